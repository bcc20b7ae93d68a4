/**
 * Who shifted a contribution: integrated gradients along the gate, from the mean one to the actual one.
 *
 * The same as nae.explanation.context, for one feature of one row. The parts sum to the contribution minus the mean
 * effect of its value.
 */

import { blend, clipAt, type Explanation, mixed } from "./evaluate.ts";
import type { Cells, Model } from "./model.ts";
import type { Gate } from "./steps.ts";

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
function ownHidden(model: Model, gate: Gate, cells: Cells, i: number): Float64Array {
  const { nFeatures, tables, round } = model;
  const size = gate.bias.length;
  const out = new Float64Array(size);
  blend(round, gate.terms, size, cells, i, out);
  for (let at = 0; at < size; at++) {
    let base = gate.bias[at];
    for (let j = 0; j < nFeatures; j++) if (j !== i) base += tables.gateMean[j * size + at];
    out[at] += round(base);
  }
  return out;
}

/** Return the mean gradient of the contribution of `i` by the hidden values, (width, member), along the way. */
function slopesAlong(
  model: Model,
  gate: Gate,
  start: Float64Array,
  end: Float64Array,
  experts: Float64Array,
  i: number,
  o: number,
): Float64Array {
  const { nExperts, nMembers, nOutputs } = model;
  const out = new Float64Array(start.length);
  for (let n = 0; n < NODES.length; n++) {
    const hidden = start.map((value, at) => value + (end[at] - value) * NODES[n]);
    const slopes = gate.share.weighSmoothly(gate.logits(hidden, i));
    for (let m = 0; m < nMembers; m++) {
      let middle = 0;
      for (let k = 0; k < nExperts; k++)
        middle += slopes[k * nMembers + m] * experts[(k * nOutputs + o) * nMembers + m];
      for (let k = 0; k < nExperts; k++)
        slopes[k * nMembers + m] *= WEIGHTS[n] * (experts[(k * nOutputs + o) * nMembers + m] - middle);
    }
    gate.pull(slopes, hidden, i).forEach((slope, at) => {
      out[at] += slope;
    });
  }
  return out;
}

/** Return what every other feature changed about the contribution of feature `i`, (feature,). */
export function causesOf(model: Model, cells: Cells, found: Explanation, i: number, o: number): Float64Array {
  const { nExperts, nFeatures, nMembers, nOutputs, tables, gate, round } = model;
  const parts = new Float64Array(nFeatures);
  if (!gate || !model.hasContext) return parts;
  const experts = new Float64Array(nExperts * nOutputs * nMembers);
  blend(round, model.mix.experts, experts.length, cells, i, experts);
  const start = ownHidden(model, gate, cells, i);
  const reference = clipAt(model, cells, i)(mixed(model, gate.share.weigh(gate.logits(start, i)), experts, o), o);
  const slopes = slopesAlong(model, gate, start, gate.lookUp(cells), experts, i, o);
  const size = start.length;
  const terms = new Float64Array(size);
  let total = 0;
  let spread = 0;
  for (let j = 0; j < nFeatures; j++) {
    if (j === i) continue;
    blend(round, gate.terms, size, cells, j, terms);
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
