/**
 * Who shifted a contribution: integrated gradients along the gate, from the mean one to the actual one.
 *
 * The same as nae.explanation.context, for one feature of one row. The parts sum to the contribution minus the mean
 * effect of its value.
 */

import { blend, type Explanation, hiddenOf, logitsOf, mixed, route } from "./evaluate.ts";
import type { Cells, Model } from "./model.ts";

// Gauss-Legendre points and weights on [0, 1].
const NODES = [
  0.01985507175123188, 0.10166676129318664, 0.2372337950418355, 0.4082826787521751, 0.5917173212478249,
  0.7627662049581645, 0.8983332387068134, 0.9801449282487681,
];
const WEIGHTS = [
  0.05061426814518813, 0.11119051722668724, 0.15685332293894363, 0.181341891689181, 0.181341891689181,
  0.15685332293894363, 0.11119051722668724, 0.05061426814518813,
];

/** Return bias, own terms and the others' mean terms, (width, member): the gate of an average context. */
function ownHidden(model: Model, cells: Cells, i: number): Float64Array {
  const { nFeatures, nMembers, tables, width, round } = model;
  const size = width * nMembers;
  const out = new Float64Array(size);
  blend(model, tables.terms, size, cells, i, out);
  for (let at = 0; at < size; at++) {
    let base = tables.bias[at];
    for (let j = 0; j < nFeatures; j++) if (j !== i) base += tables.gateMean[j * size + at];
    out[at] += round(base);
  }
  return out;
}

/** Return the mean gradient of the contribution of `i` by the hidden values, (width, member), along the way. */
function slopesAlong(
  model: Model,
  start: Float64Array,
  end: Float64Array,
  experts: Float64Array,
  i: number,
  o: number,
): Float64Array {
  const { nExperts, nFeatures, nMembers, nOutputs, tables, width } = model;
  const out = new Float64Array(width * nMembers);
  const hidden = new Float64Array(out.length);
  const isDeep = model.payload.gate === "deep";
  for (let n = 0; n < NODES.length; n++) {
    for (let at = 0; at < hidden.length; at++) hidden[at] = start[at] + (end[at] - start[at]) * NODES[n];
    // Equal weights have no gradient; as in training, that of the softmax stands in for it.
    const weights = route(model, logitsOf(model, hidden, i), true);
    for (let m = 0; m < nMembers; m++) {
      let middle = 0;
      for (let k = 0; k < nExperts; k++)
        middle += weights[k * nMembers + m] * experts[(k * nOutputs + o) * nMembers + m];
      for (let k = 0; k < nExperts; k++) {
        const weight = weights[k * nMembers + m];
        const slope = WEIGHTS[n] * weight * (experts[(k * nOutputs + o) * nMembers + m] - middle);
        const logit = k * nFeatures + i;
        if (!tables.mix) {
          out[logit * nMembers + m] += slope;
          continue;
        }
        for (let h = 0; h < width; h++) {
          if (isDeep && hidden[h * nMembers + m] <= 0) continue;
          out[h * nMembers + m] += slope * tables.mix[(m * width + h) * nExperts * nFeatures + logit];
        }
      }
    }
  }
  return out;
}

/** Return what every other feature changed about the contribution of feature `i`, (feature,). */
export function causesOf(model: Model, cells: Cells, found: Explanation, i: number, o: number): Float64Array {
  const { nExperts, nFeatures, nMembers, nOutputs, tables, width } = model;
  const parts = new Float64Array(nFeatures);
  if (!model.hasContext) return parts;
  const experts = new Float64Array(nExperts * nOutputs * nMembers);
  blend(model, tables.experts, experts.length, cells, i, experts);
  const start = ownHidden(model, cells, i);
  const reference = mixed(model, route(model, logitsOf(model, start, i)), experts, o);
  const slopes = slopesAlong(model, start, hiddenOf(model, cells), experts, i, o);
  const size = width * nMembers;
  const terms = new Float64Array(size);
  let total = 0;
  let spread = 0;
  for (let j = 0; j < nFeatures; j++) {
    if (j === i) continue;
    blend(model, tables.terms, size, cells, j, terms);
    let sum = 0;
    for (let at = 0; at < size; at++) sum += slopes[at] * (terms[at] - tables.gateMean[j * size + at]);
    parts[j] = sum / nMembers;
    total += parts[j];
    spread += Math.abs(parts[j]);
  }
  const at = i * nOutputs + o;
  const left = found.values[at] - reference - total;
  const gap = reference - found.own[at];
  for (let j = 0; j < nFeatures; j++) {
    if (spread > 0) parts[j] += (left * Math.abs(parts[j])) / spread;
    parts[j] += tables.typical[(i * nFeatures + j) * nOutputs + o] * gap;
  }
  return parts;
}
