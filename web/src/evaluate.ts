/**
 * Predicting and explaining from the tables, as nae.tables and nae.explanation do.
 *
 * Interpolation and gate sums round to the model's own number type in the same order as numpy, so that the logits, and
 * with them the choice of active experts, are the same numbers; everything after is double.
 */

import type { Cells, Model } from "./model.ts";
import type { Numbers, Payload } from "./payload.ts";

/** A row explained; arrays over features have the outputs innermost. */
export interface Explanation {
  values: Float64Array;
  lower: Float64Array;
  upper: Float64Array;
  /** The mean contribution at the value: what does not depend on the other features. */
  own: Float64Array;
  score: Float64Array;
  /** The score after the link. */
  prediction: Float64Array;
}

/** Write the interpolated row of a table (slot, width) into `out`. */
export function blend(
  round: (value: number) => number,
  table: Numbers,
  width: number,
  cells: Cells,
  i: number,
  out: Float64Array,
  add = false,
): void {
  const low = cells.slot[i] * width;
  const part = cells.fraction[i];
  for (let at = 0; at < width; at++) {
    let value = table[low + at];
    if (part > 0) value = round(value + round(round(table[low + width + at] - value) * part));
    out[at] = add ? round(out[at] + value) : value;
  }
}

/** Return the least and the most of experts (expert, output, member) under any logits, for one output. */
export function boundsOf(model: Model, experts: Numbers, from: number, o: number): [number, number] {
  const { nExperts, nMembers, nOutputs } = model;
  const n = model.mix.nExtreme;
  let lower = 0;
  let upper = 0;
  for (let m = 0; m < nMembers; m++) {
    if (n > 1) {
      const sorted = Array.from({ length: nExperts }, (_, k) => experts[from + (k * nOutputs + o) * nMembers + m]);
      sorted.sort((a, b) => a - b);
      for (let k = 0; k < n; k++) {
        lower += sorted[k] / n;
        upper += sorted[nExperts - 1 - k] / n;
      }
      continue;
    }
    let least = Number.POSITIVE_INFINITY;
    let most = Number.NEGATIVE_INFINITY;
    for (let k = 0; k < nExperts; k++) {
      const value = experts[from + (k * nOutputs + o) * nMembers + m];
      if (value < least) least = value;
      if (value > most) most = value;
    }
    lower += least;
    upper += most;
  }
  return [lower / nMembers, upper / nMembers];
}

/** Return the weighted mean over experts and members, for one output. */
export function mixed(model: Model, weights: Float64Array, experts: Float64Array, o: number): number {
  const { nExperts, nMembers, nOutputs } = model;
  let sum = 0;
  for (let k = 0; k < nExperts; k++) {
    const from = (k * nOutputs + o) * nMembers;
    for (let m = 0; m < nMembers; m++) sum += weights[k * nMembers + m] * experts[from + m];
  }
  return sum / nMembers;
}

/** Return a function that keeps the contributions of the n-th of some cells, or their bounds, within their range. */
export function clipAt(model: Model, cells: Cells, n: number): (value: number, o: number) => number {
  const { clamps, nOutputs } = model;
  if (!clamps) return (value) => value;
  const [lower, upper] = [new Float64Array(nOutputs), new Float64Array(nOutputs)];
  blend(model.round, clamps.lower, nOutputs, cells, n, lower);
  blend(model.round, clamps.upper, nOutputs, cells, n, upper);
  return (value, o) => Math.min(Math.max(value, lower[o]), upper[o]);
}

function shares(score: Float64Array): Float64Array {
  const most = Math.max(...score);
  const raised = score.map((one) => Math.exp(one - most));
  const total = raised.reduce((sum, one) => sum + one, 0);
  return raised.map((one) => one / total);
}

const INVERSES: Record<Payload["link"], (score: Float64Array) => Float64Array> = {
  identity: (score) => score.slice(),
  log: (score) => score.map(Math.exp),
  logit: (score) => score.map((one) => 1 / (1 + Math.exp(-one))),
  softmax: shares,
};

/** Return the prediction of a score. */
export function inverseLink(link: Payload["link"], score: Float64Array): Float64Array {
  return INVERSES[link](score);
}

/** Return everything about a row. */
export function explain(model: Model, cells: Cells): Explanation {
  const { nFeatures, nOutputs, nExperts, nMembers, tables, gate, mix } = model;
  const size = nFeatures * nOutputs;
  const out: Explanation = {
    values: new Float64Array(size),
    lower: new Float64Array(size),
    upper: new Float64Array(size),
    own: new Float64Array(size),
    score: Float64Array.from(tables.intercept),
    prediction: new Float64Array(nOutputs),
  };
  const width = nExperts * nOutputs * nMembers;
  const experts = new Float64Array(width);
  const even = new Float64Array(nMembers).fill(1);
  const hidden = gate?.lookUp(cells);
  for (let i = 0; i < nFeatures; i++) {
    blend(model.round, mix.experts, width, cells, i, experts);
    const weights = gate && hidden ? gate.share.weigh(gate.logits(hidden, i)) : even;
    const clip = clipAt(model, cells, i);
    for (let o = 0; o < nOutputs; o++) {
      const at = i * nOutputs + o;
      const value = clip(mixed(model, weights, experts, o), o);
      const [lower, upper] = boundsOf(model, experts, 0, o);
      out.values[at] = value;
      out.lower[at] = Math.min(clip(lower, o), value);
      out.upper[at] = Math.max(clip(upper, o), value);
      out.own[at] = model.hasContext ? meanEffect(model, cells, i, o) : value;
      out.score[o] += value;
    }
  }
  out.prediction = inverseLink(model.payload.link, out.score);
  return out;
}

/** Return the mean contribution at a value. */
export function meanEffect(model: Model, cells: Cells, i: number, o: number): number {
  const { mean } = model.tables;
  const low = mean[cells.slot[i] * model.nOutputs + o];
  const part = cells.fraction[i];
  return part > 0 ? low + (mean[(cells.slot[i] + 1) * model.nOutputs + o] - low) * part : low;
}
