/** What two or three features do together, the others' gate terms held at their training mean. */

import { blend, clipAt, mixed } from "./evaluate.ts";
import { type Cells, FEW_VALUES, type Feature, locate, locateValue, type Model, rowValues } from "./model.ts";
import type { Numbers, Value } from "./payload.ts";
import type { Gate } from "./steps.ts";

/** The logits of a feature at a point of a grid. */
type PointLogits = (point: number[]) => Float64Array;

export const PANELS = 5;
const CENTRAL = 0.995;
const DEEP_DRAWS = 16;

/** The values of one feature that a map shows. */
export interface Line {
  feature: Feature;
  /** Slot within the feature plus fraction, ascending for numbers. */
  position: number[];
  values: Value[];
  /** Share of the training rows nearest each value. */
  weight: number[];
}

export interface Interaction {
  lines: Line[];
  /** Per named feature its contribution at every point of the grid, the last line's values innermost. */
  parts: Float64Array[];
  isExact: boolean;
}

function slotWeights(model: Model, feature: Feature): number[] {
  return Array.from(model.tables.weight.subarray(feature.start, feature.start + feature.nValues + 2));
}

function middleMass(weight: number[]): number[] {
  const total = weight.reduce((sum, one) => sum + one, 0);
  let before = 0;
  return weight.map((one) => {
    const at = (before + one / 2) / total;
    before += one;
    return at;
  });
}

/** Return the outermost knots within the central 99 % of the weight. */
export function centralRange(model: Model, feature: Feature): [number, number] {
  const knots = feature.knots;
  const weight = slotWeights(model, feature).slice(0, feature.nValues);
  if (!weight.some((one) => one > 0)) return [knots[0], knots[knots.length - 1]];
  const mass = middleMass(weight);
  const last = knots.length - 1;
  const above = mass.findIndex((one) => one >= 1 - CENTRAL);
  const low = above < 0 ? last : above;
  const beyond = mass.findIndex((one) => one > CENTRAL);
  const high = Math.max((beyond < 0 ? mass.length : beyond) - 1, 0);
  return [knots[low], knots[Math.max(low, high)]];
}

function unique(numbers: number[]): number[] {
  return [...new Set(numbers)].sort((a, b) => a - b);
}

function nearest(numbers: ArrayLike<number>, wanted: number): number {
  let best = 0;
  for (let n = 1; n < numbers.length; n++) {
    if (Math.abs(numbers[n] - wanted) < Math.abs(numbers[best] - wanted)) best = n;
  }
  return best;
}

/** Return a few knots, each in the middle of an equal part of the rows. */
function quantileNumbers(knots: Float64Array, weight: number[]): number[] {
  const mass = middleMass(weight);
  return unique(Array.from({ length: PANELS }, (_, n) => knots[nearest(mass, (n + 0.5) / PANELS)]));
}

/** Return evenly spread numbers over the central part; of whole numbers only such as occur. */
function spreadNumbers(model: Model, feature: Feature, resolution: number): number[] {
  const { knots } = feature;
  const [low, high] = centralRange(model, feature);
  if (high <= low) return [knots[0], knots[knots.length - 1]];
  const numbers = Array.from({ length: resolution }, (_, n) => low + ((high - low) * n) / (resolution - 1));
  numbers[resolution - 1] = high;
  if (!feature.integral) return numbers;
  if (knots.length <= FEW_VALUES) return unique(numbers.map((number) => knots[nearest(knots, number)]));
  return unique(numbers.map((number) => Math.floor(number + 0.5)));
}

function places(model: Model, feature: Feature, resolution: number): number[] {
  const weight = slotWeights(model, feature).slice(0, feature.nValues);
  if (feature.kind === "category") {
    const order = feature.order.filter((slot) => slot < feature.nValues);
    if (resolution >= feature.nValues) return order;
    const kept = weight.map((_, slot) => slot).sort((a, b) => weight[b] - weight[a] || a - b);
    const chosen = new Set(kept.slice(0, resolution));
    return order.filter((slot) => chosen.has(slot));
  }
  if (feature.nValues <= resolution) return weight.map((_, slot) => slot);
  const numbers =
    resolution === PANELS ? quantileNumbers(feature.knots, weight) : spreadNumbers(model, feature, resolution);
  return numbers.map((number) => {
    const [slot, part] = locateValue(feature, number);
    return slot + part;
  });
}

/** Return the values of a feature to show. */
export function makeLine(model: Model, feature: Feature, resolution: number): Line {
  const position = places(model, feature, resolution);
  if (feature.hasMissing) position.push(feature.nValues);
  const values = position.map((at): Value => {
    if (at >= feature.nValues) return null;
    if (feature.kind === "category") return at < feature.levels.length ? feature.levels[at] : feature.rare[0];
    const low = Math.floor(at);
    const part = at - low;
    return part > 0 ? feature.knots[low] * (1 - part) + feature.knots[low + 1] * part : feature.knots[low];
  });
  const order = position.map((_, n) => n).sort((a, b) => position[a] - position[b] || a - b);
  const weight = new Array<number>(position.length).fill(0);
  let n = 0;
  slotWeights(model, feature).forEach((one, slot) => {
    while (n < order.length - 1 && (position[order[n]] + position[order[n + 1]]) / 2 < slot) n++;
    weight[order[n]] += one;
  });
  const total = weight.reduce((sum, one) => sum + one, 0) || 1;
  return { feature, position, values, weight: weight.map((one) => one / total) };
}

function cellsOf(model: Model, line: Line): Cells {
  const slot = new Int32Array(line.position.length);
  const fraction = new Float64Array(line.position.length);
  line.position.forEach((position, n) => {
    slot[n] = Math.floor(position) + line.feature.start;
    fraction[n] = model.round(position - Math.floor(position));
    if (fraction[n] >= 1) {
      slot[n] += 1;
      fraction[n] = 0;
    }
  });
  return { slot, fraction };
}

/** Return bias plus the gate terms of the features not named, one array per context: the mean one, or drawn rows. */
function heldContexts(model: Model, gate: Gate, chosen: Set<number>): Float64Array[] {
  const { tables, nFeatures } = model;
  const size = gate.bias.length;
  const nRows = model.payload.rows.number.length;
  if (!gate.isLinear && nRows > 0) {
    const nDraws = Math.min(DEEP_DRAWS, nRows);
    return Array.from({ length: nDraws }, (_, n) => {
      const row = Math.round((n * (nRows - 1)) / Math.max(nDraws - 1, 1));
      const cells = locate(model, rowValues(model, row));
      const held = Float64Array.from(gate.bias);
      for (let j = 0; j < nFeatures; j++)
        if (!chosen.has(j)) blend(model.round, gate.terms, size, cells, j, held, true);
      return held;
    });
  }
  const held = Float64Array.from(gate.bias);
  if (gate.sumsFeatures) {
    for (let j = 0; j < nFeatures; j++) {
      if (!chosen.has(j)) for (let at = 0; at < size; at++) held[at] += tables.gateMean[j * size + at];
    }
  }
  return [held];
}

/** Return the rows of a table at every value of a line, `width` numbers each. */
function tableAlong(model: Model, table: Numbers, width: number, line: Line): Float64Array[] {
  const cells = cellsOf(model, line);
  return line.position.map((_, n) => {
    const out = new Float64Array(width);
    blend(model.round, table, width, cells, n, out);
    return out;
  });
}

/** Return the logits of feature `i` over the grid, as a function of a point, for one context. */
function logitsOver(gate: Gate, terms: Float64Array[][], at: number, i: number, held: Float64Array): PointLogits {
  if (!gate.isLinear) {
    const hidden = new Float64Array(held.length);
    return (point) => {
      for (let w = 0; w < hidden.length; w++) {
        hidden[w] = held[w];
        for (let axis = 0; axis < point.length; axis++) hidden[w] += terms[axis][point[axis]][w];
      }
      return gate.logits(hidden, i);
    };
  }
  // Logits are linear in the terms, so every axis is turned into logits once.
  const none = gate.logits(new Float64Array(held.length), i);
  const base = gate.logits(held, i);
  const along = terms.map((axis, a) =>
    axis.map((term) => {
      if (gate.sumsFeatures) return gate.logits(term, i).map((value, w) => value - none[w]);
      return a === at ? term : new Float64Array(none.length);
    }),
  );
  const out = new Float64Array(none.length);
  return (point) => {
    for (let w = 0; w < out.length; w++) {
      out[w] = base[w];
      for (let axis = 0; axis < point.length; axis++) out[w] += along[axis][point[axis]][w];
    }
    return out;
  };
}

/** Call `visit` with every point of a grid, as one index per line and the flat index. */
function visitGrid(sizes: number[], visit: (point: number[], flat: number) => void): void {
  const total = sizes.reduce((product, size) => product * size, 1);
  const point = sizes.map(() => 0);
  for (let flat = 0; flat < total; flat++) {
    visit(point, flat);
    for (let axis = sizes.length - 1; axis >= 0; axis--) {
      point[axis]++;
      if (point[axis] < sizes[axis]) break;
      point[axis] = 0;
    }
  }
}

/** Return the contributions of two or three features over a grid of their values, for one output. */
export function interact(
  model: Model,
  chosen: number[],
  resolution: (feature: Feature) => number,
  o: number,
): Interaction {
  const lines = chosen.map((i, at) => {
    const feature = model.features[i];
    return makeLine(model, feature, at === 2 ? PANELS : resolution(feature));
  });
  const sizes = lines.map((line) => line.position.length);
  const total = sizes.reduce((product, size) => product * size, 1);
  const { gate, mix, nExperts, nMembers } = model;
  const contexts = gate ? heldContexts(model, gate, new Set(chosen)) : [new Float64Array(0)];
  const terms = gate ? lines.map((line) => tableAlong(model, gate.terms, gate.width * nMembers, line)) : [];
  const even = new Float64Array(nMembers).fill(1);
  const parts = chosen.map((i, at) => {
    const experts = tableAlong(model, mix.experts, nExperts * model.nOutputs * nMembers, lines[at]);
    const cells = cellsOf(model, lines[at]);
    const clips = lines[at].position.map((_, n) => clipAt(model, cells, n));
    const out = new Float64Array(total);
    for (const held of contexts) {
      const logits = gate ? logitsOver(gate, terms, at, i, held) : null;
      visitGrid(sizes, (point, flat) => {
        const weights = gate && logits ? gate.share.weigh(logits(point)) : even;
        out[flat] += clips[point[at]](mixed(model, weights, experts[point[at]], o), o) / contexts.length;
      });
    }
    return out;
  });
  return { lines, parts, isExact: model.isExact };
}

/** Return the named features' contributions together. */
export function totalOf(found: Interaction): Float64Array {
  const out = found.parts[0].slice();
  for (const part of found.parts.slice(1)) {
    for (let at = 0; at < out.length; at++) out[at] += part[at];
  }
  return out;
}

/** Return the total without what fewer of the features do alone. */
export function pureOf(found: Interaction): Float64Array {
  const out = totalOf(found);
  const sizes = found.lines.map((line) => line.position.length);
  found.lines.forEach((line, axis) => {
    const inner = sizes.slice(axis + 1).reduce((product, size) => product * size, 1);
    const outer = sizes.slice(0, axis).reduce((product, size) => product * size, 1);
    for (let a = 0; a < outer; a++) {
      for (let b = 0; b < inner; b++) {
        let mean = 0;
        const at = (n: number) => (a * sizes[axis] + n) * inner + b;
        for (let n = 0; n < sizes[axis]; n++) mean += line.weight[n] * out[at(n)];
        for (let n = 0; n < sizes[axis]; n++) out[at(n)] -= mean;
      }
    }
  });
  return out;
}
