/** A model in the page: its features with their slots, its tables, and the cells of a row. */

import {
  type FeaturePayload,
  type Numbers,
  type Payload,
  reader,
  type Tables,
  unpackTables,
  type Value,
} from "./payload.ts";
import { buildClamps, buildGate, buildMix, type Clamps, type Gate, type Mix } from "./steps.ts";

export interface Feature extends FeaturePayload {
  at: number;
  /** Where its slots begin in the stacked tables. */
  start: number;
  /** Knots or levels; the slots missing and unseen follow. */
  nValues: number;
  knots: Float64Array;
  labels: string[];
  /** Telling digits that set listed values apart, otherwise as many as a reader would write. */
  digits: number;
  slotOf: Map<string, number>;
  /** A text that stands for a level nobody has seen. */
  unseen: string;
}

/** Slot (in the stacked tables) and fraction towards the next one, of every feature of a row. */
export interface Cells {
  slot: Int32Array;
  fraction: Float64Array;
}

export interface Model {
  payload: Payload;
  tables: Tables;
  features: Feature[];
  nFeatures: number;
  nExperts: number;
  nOutputs: number;
  nMembers: number;
  nSlots: number;
  /** Null where every feature has only one expert. */
  gate: Gate | null;
  mix: Mix;
  /** Null where the experts alone bound the contributions. */
  clamps: Clamps | null;
  /** Whether other features can change a contribution. */
  hasContext: boolean;
  /** Whether a map of a few features is exact, with the others held. */
  isExact: boolean;
  /** Rounds as the model's own number type does. */
  round: (value: number) => number;
}

/** Values of a number that are shown one by one: the days of a month. */
export const FEW_VALUES = 31;

const same = (value: number): number => value;

function digitsOf({ isListed }: FeaturePayload, knots: Float64Array): number {
  const isApart = (digits: number) =>
    new Set(Array.from(knots, (knot) => knot.toPrecision(digits))).size === knots.length;
  let digits = 6;
  while (isListed && digits < 15 && !isApart(digits)) digits++;
  return digits;
}

function buildFeature(payload: FeaturePayload, at: number, start: number, knots: Numbers, first: number): Feature {
  const isCategory = payload.kind === "category";
  const apart = (name: string): string => (payload.levels.includes(name) ? apart(`(${name})`) : name);
  const own = isCategory ? new Float64Array(0) : Float64Array.from(knots.subarray(first, first + payload.nKnots));
  const shown = isCategory
    ? [...payload.levels, ...(payload.rare.length ? [apart("other")] : [])]
    : Array.from(own, (knot) =>
        payload.kind === "boolean" ? (knot ? "True" : "False") : String(Number(knot.toPrecision(12))),
      );
  const slotOf = new Map<string, number>();
  payload.levels.forEach((level, slot) => {
    slotOf.set(level, slot);
  });
  for (const level of payload.rare) slotOf.set(level, payload.levels.length);
  let unseen = "unseen";
  while (slotOf.has(unseen)) unseen += "′";
  return {
    ...payload,
    at,
    start,
    nValues: shown.length,
    digits: digitsOf(payload, own),
    knots: own,
    labels: [...shown, apart("missing"), apart("unseen")],
    slotOf,
    unseen,
  };
}

/** Return the model of a payload. */
export function buildModel(payload: Payload): Model {
  const get = reader(payload);
  const tables = unpackTables(get);
  const features: Feature[] = [];
  let start = 0;
  let first = 0;
  payload.features.forEach((content, at) => {
    const feature = buildFeature(content, at, start, tables.knots, first);
    features.push(feature);
    start += feature.nValues + 2;
    first += feature.knots.length;
  });
  const sizes = {
    nFeatures: features.length,
    nExperts: payload.nExperts,
    nOutputs: payload.outputs.length,
    nMembers: payload.nMembers,
    round: payload.isDouble ? same : Math.fround,
  };
  const gate = buildGate(payload.steps, start, get, sizes);
  return {
    ...sizes,
    payload,
    tables,
    features,
    nSlots: start,
    gate,
    mix: buildMix(payload.steps, get),
    clamps: buildClamps(payload.steps, get),
    hasContext: features.length > 1 && gate !== null && gate.sumsFeatures,
    isExact: gate === null || gate.isLinear,
  };
}

function locateNumber(feature: Feature, value: number): [number, number] {
  const knots = feature.knots;
  const last = knots.length - 1;
  const inside = Math.min(Math.max(value, knots[0]), knots[last]);
  let low = 0;
  let high = knots.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (knots[middle] <= inside) low = middle + 1;
    else high = middle;
  }
  const slot = low - 1;
  if (slot >= last) return [slot, 0];
  const span = knots[slot + 1] - knots[slot];
  // A span may be beyond the largest number.
  if (Number.isFinite(span)) return [slot, (inside - knots[slot]) / span];
  return [slot, (inside / 2 - knots[slot] / 2) / (knots[slot + 1] / 2 - knots[slot] / 2)];
}

/** Return slot (counted within the feature) and fraction of a value; null is missing. */
export function locateValue(feature: Feature, value: Value): [number, number] {
  if (feature.kind === "category") {
    if (value === null) return [feature.nValues, 0];
    return [feature.slotOf.get(String(value)) ?? feature.nValues + 1, 0];
  }
  const number = value === null ? Number.NaN : Number(value);
  return Number.isNaN(number) ? [feature.nValues, 0] : locateNumber(feature, number);
}

/** Return the cells of a row. */
export function locate(model: Model, values: Value[]): Cells {
  const slot = new Int32Array(model.nFeatures);
  const fraction = new Float64Array(model.nFeatures);
  model.features.forEach((feature, i) => {
    const [within, part] = locateValue(feature, values[i] ?? null);
    const rounded = model.round(part);
    const isWhole = rounded >= 1;
    slot[i] = feature.start + within + (isWhole ? 1 : 0);
    fraction[i] = isWhole ? 0 : rounded;
  });
  return { slot, fraction };
}

/** Return the value a feature has at a position (slot within the feature plus fraction) among its knots. */
export function valueAt(feature: Feature, position: number): Value {
  if (feature.kind === "category") return feature.labels[Math.round(position)];
  const last = feature.knots.length - 1;
  const low = Math.min(Math.max(Math.floor(position), 0), last);
  const part = position - low;
  if (part <= 0 || low === last) return feature.knots[low];
  return feature.knots[low] * (1 - part) + feature.knots[low + 1] * part;
}

/** Return the sum of numbers. */
export function sumOf(numbers: Numbers): number {
  let sum = 0;
  for (const one of numbers) sum += one;
  return sum;
}

/** Return the value in the middle of the training rows: the median of a number, the most frequent level. */
export function typicalValue(model: Model, feature: Feature): Value {
  const weight = model.tables.weight.subarray(feature.start, feature.start + feature.nValues);
  if (feature.kind !== "number") {
    let best = 0;
    weight.forEach((one, slot) => {
      if (one > weight[best]) best = slot;
    });
    if (feature.kind === "boolean") return feature.knots[best];
    return best < feature.levels.length ? feature.levels[best] : feature.rare[0];
  }
  const total = sumOf(weight);
  let mass = 0;
  for (let slot = 0; slot < weight.length; slot++) {
    mass += weight[slot];
    if (mass >= total / 2) return feature.knots[slot];
  }
  return feature.knots[feature.knots.length - 1];
}

/** Return the values of a carried row. */
export function rowValues(model: Model, row: number): Value[] {
  return model.payload.rows.columns.map((column) => {
    if (column.numbers) return column.numbers[row];
    const code = column.codes?.[row] ?? -1;
    return code < 0 ? null : (column.texts?.[code] ?? null);
  });
}
