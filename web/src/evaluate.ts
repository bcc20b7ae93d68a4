/**
 * Predicting and explaining from the tables, as nae.tables and nae.explanation do.
 *
 * Interpolation and gate sums round to the model's own number type in the same order as numpy, so that the logits, and
 * with them the choice of active experts, are the same numbers; everything after is double.
 */

import type { Cells, Model } from "./model.ts";
import type { Numbers } from "./payload.ts";

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
  model: Model,
  table: Numbers,
  width: number,
  cells: Cells,
  i: number,
  out: Float64Array,
  add = false,
): void {
  const round = model.round;
  const low = cells.slot[i] * width;
  const part = cells.fraction[i];
  for (let at = 0; at < width; at++) {
    let value = table[low + at];
    if (part > 0) value = round(value + round(round(table[low + width + at] - value) * part));
    out[at] = add ? round(out[at] + value) : value;
  }
}

/** Return bias plus summed gate terms, (width, member); for a diagonal gate (expert, feature, member). */
export function hiddenOf(model: Model, cells: Cells): Float64Array {
  const { tables, nFeatures, nMembers, width, round } = model;
  const size = width * nMembers;
  if (model.payload.gate === "diagonal") {
    const out = new Float64Array(tables.bias.length);
    const own = new Float64Array(size);
    for (let i = 0; i < nFeatures; i++) {
      blend(model, tables.terms, size, cells, i, own);
      for (let k = 0; k < width; k++) {
        for (let m = 0; m < nMembers; m++) {
          const at = (k * nFeatures + i) * nMembers + m;
          out[at] = round(own[k * nMembers + m] + tables.bias[at]);
        }
      }
    }
    return out;
  }
  const out = new Float64Array(size);
  for (let i = 0; i < nFeatures; i++) blend(model, tables.terms, size, cells, i, out, true);
  for (let at = 0; at < size; at++) out[at] = round(out[at] + tables.bias[at]);
  return out;
}

/** Return the logits of one feature, (expert, member), given hidden values. */
export function logitsOf(model: Model, hidden: Float64Array, i: number): Float64Array {
  const { nExperts, nFeatures, nMembers, tables, width } = model;
  const out = new Float64Array(nExperts * nMembers);
  if (!tables.mix || !tables.mixBias) {
    for (let k = 0; k < nExperts; k++) {
      for (let m = 0; m < nMembers; m++) out[k * nMembers + m] = hidden[(k * nFeatures + i) * nMembers + m];
    }
    return out;
  }
  const nLogits = nExperts * nFeatures;
  const isDeep = model.payload.gate === "deep";
  for (let m = 0; m < nMembers; m++) {
    for (let h = 0; h < width; h++) {
      const value = hidden[h * nMembers + m];
      if (isDeep && value <= 0) continue;
      const row = (m * width + h) * nLogits + i;
      for (let k = 0; k < nExperts; k++) out[k * nMembers + m] += value * tables.mix[row + k * nFeatures];
    }
    for (let k = 0; k < nExperts; k++) out[k * nMembers + m] += tables.mixBias[(k * nFeatures + i) * nMembers + m];
  }
  return out;
}

function isActive(logits: Float64Array, nExperts: number, nMembers: number, m: number, nActive: number): boolean[] {
  const order = Array.from({ length: nExperts }, (_, k) => k);
  order.sort((a, b) => logits[b * nMembers + m] - logits[a * nMembers + m] || a - b);
  const out = new Array<boolean>(nExperts).fill(false);
  for (const k of order.slice(0, nActive)) out[k] = true;
  return out;
}

/** Turn logits (expert, member) into weights, in place. */
export function route(model: Model, logits: Float64Array, isSoft = model.payload.routing === "softmax"): Float64Array {
  const { nExperts, nMembers } = model;
  const nActive = isSoft && model.payload.routing !== "softmax" ? nExperts : model.payload.nActive;
  for (let m = 0; m < nMembers; m++) {
    const active = nActive < nExperts ? isActive(logits, nExperts, nMembers, m, nActive) : null;
    let most = Number.NEGATIVE_INFINITY;
    for (let k = 0; k < nExperts; k++) most = Math.max(most, logits[k * nMembers + m]);
    let total = 0;
    for (let k = 0; k < nExperts; k++) {
      const at = k * nMembers + m;
      const isOn = active === null || active[k];
      logits[at] = !isOn ? 0 : isSoft ? Math.exp(logits[at] - most) : 1;
      total += logits[at];
    }
    for (let k = 0; k < nExperts; k++) logits[k * nMembers + m] /= total;
  }
  return logits;
}

/** Return the least and the most of experts (expert, output, member) under any logits, for one output. */
export function boundsOf(model: Model, experts: Numbers, from: number, o: number): [number, number] {
  const { nExperts, nMembers, nOutputs } = model;
  const isEqual = model.payload.routing === "equal";
  let lower = 0;
  let upper = 0;
  for (let m = 0; m < nMembers; m++) {
    if (isEqual) {
      const sorted = Array.from({ length: nExperts }, (_, k) => experts[from + (k * nOutputs + o) * nMembers + m]);
      sorted.sort((a, b) => a - b);
      const n = model.payload.nActive;
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

/** Return the prediction of a score. */
export function inverseLink(link: string, score: Float64Array): Float64Array {
  if (link === "log") return score.map(Math.exp);
  if (link === "logit") return score.map((one) => 1 / (1 + Math.exp(-one)));
  if (link === "softmax") {
    const most = Math.max(...score);
    const raised = score.map((one) => Math.exp(one - most));
    const total = raised.reduce((sum, one) => sum + one, 0);
    return raised.map((one) => one / total);
  }
  return score.slice();
}

/** Return everything about a row. */
export function explain(model: Model, cells: Cells): Explanation {
  const { nFeatures, nOutputs, nExperts, nMembers, tables } = model;
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
  const hidden = nExperts > 1 ? hiddenOf(model, cells) : null;
  for (let i = 0; i < nFeatures; i++) {
    blend(model, tables.experts, width, cells, i, experts);
    const weights = hidden ? route(model, logitsOf(model, hidden, i)) : even;
    for (let o = 0; o < nOutputs; o++) {
      const at = i * nOutputs + o;
      const value = mixed(model, weights, experts, o);
      const [lower, upper] = boundsOf(model, experts, 0, o);
      out.values[at] = value;
      out.lower[at] = Math.min(lower, value);
      out.upper[at] = Math.max(upper, value);
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
