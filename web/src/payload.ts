/** What the page carries: the model's tables as base64, everything else as JSON. Written by nae.report.payload. */

export type Kind = "number" | "boolean" | "category";
export type Value = number | string | null;

export interface PackedArray {
  type: "f64" | "f32" | "u16";
  data: string;
  /** u16 only: value = offset + scale * stored. */
  scale?: number;
  offset?: number;
}

export interface FeaturePayload {
  name: string;
  kind: Kind;
  integral: boolean;
  /** The knots of a number are its values, few enough to be shown one by one. */
  isListed: boolean;
  hasMissing: boolean;
  nKnots: number;
  levels: string[];
  rare: string[];
  /** The order in which the values are shown, missing and unseen last. */
  order: number[];
  /** Where the true effects lie with 90 % confidence, (slot, output); null where no row says anything. */
  sure?: { lower: (number | null)[][]; upper: (number | null)[][] };
  /** Whether the feature cannot be told from noise. */
  isNoise?: boolean;
}

export interface Quality {
  nRows: number;
  scores: {
    name: string;
    better: "lower" | "higher";
    model: number;
    baseline: number;
    /** Where 95 of 100 samples of the rows put the model's value. */
    interval: [number, number] | null;
  }[];
  baseline: string;
}

export interface ColumnPayload {
  numbers?: (number | null)[];
  texts?: string[];
  codes?: number[];
}

export interface RowsPayload {
  nTotal: number;
  /** What each carried row is called. */
  number: number[];
  columns: ColumnPayload[];
  /** One list per output (regression) or a single list of class positions. */
  target: (number | null)[][];
  /** The score of every row, one number per output. */
  score: number[][];
}

/** How many rows of the report are near each place of each pair's map. */
export interface DensityPayload {
  pairs: [number, number][];
  /** Base64 of two bits per place, pair after pair: 0 (none) to 3 (enough). */
  levels: string;
}

export interface Reduction {
  members: number;
  ofMembers: number;
  /** Every how-many-th knot was kept. */
  knotStride: number;
  largestDifference: number;
  largestPredictionDifference: number;
  nRows: number;
}

export interface Cap {
  adds: number;
  takes: number;
  outputs: string[];
}

/** A promise of the fit, and whether the tables prove it. */
export interface PromisePayload {
  kind: "monotone" | "max effect" | "isolated" | "unchanged" | "curved" | "ordered";
  way: "" | "increasing" | "decreasing" | "convex" | "concave";
  /** Null for a promise about outputs. */
  feature: number | null;
  verdict: "proven" | "refuted" | "undecided";
  sentence: string;
  limit: number;
  /** The largest change for any input; negative for outputs that stay apart, null for infinity. */
  bound: number | null;
  /** The first and the last knot of a number. */
  range: [number, number] | null;
}

export interface NeverPayload {
  promises: PromisePayload[];
  /** What the tables prove although nobody asked. */
  found: { kind: "increasing" | "decreasing" | "isolated" | "unchanged"; features: number[] }[];
  /** The features whose limits are shown, the most important first. */
  shown: number[];
  /** The most that a feature alone moves the score of an output. */
  limits: { feature: number; output: number; effect: number | null; promised: number | null }[];
  /** Why the promises could not be checked. */
  note: string;
}

/** What the model does, as nae.tables.listing lists it; arrays are given by their names in `arrays`. */
export type Step =
  | { kind: "sum_terms"; terms: string; bias: string }
  | { kind: "own_terms"; terms: string; bias: string }
  | { kind: "rectify" }
  | { kind: "multiply"; matrix: string; bias: string }
  | { kind: "softmax"; n_active: number }
  | { kind: "equal"; n_active: number }
  | { kind: "one_expert" }
  | { kind: "mix"; experts: string; n_extreme: number }
  | { kind: "clip"; lower: string; upper: string };

/** What would have to change in rows of the page, in sentences. */
export interface RecoursePayload {
  target: string;
  /** `row` is the position among the rows of the page. */
  rows: { row: number; now: string; ways: string[]; proof: string }[];
  /** How many of the rows that were looked at reach the target as they are. */
  nReached: number;
}

export interface Payload {
  version: number;
  library: string;
  title: string;
  target: string;
  features: FeaturePayload[];
  outputs: string[];
  classes: string[];
  link: "identity" | "log" | "logit" | "softmax";
  /** From the cells of a row to its contributions. */
  steps: Step[];
  nExperts: number;
  nMembers: number;
  isDouble: boolean;
  arrays: Record<string, PackedArray>;
  caps: Cap[];
  never: NeverPayload;
  training: { nRows?: number; nHeldOut?: number; loss?: string; heldOutLoss?: number };
  quality: Quality | null;
  /** What a reader must know of a model that was fitted with an offset. */
  offsetNote?: string;
  rows: RowsPayload;
  recourse?: RecoursePayload;
  /** Null when the report carries no rows. */
  density: DensityPayload | null;
  reduction: Reduction | null;
}

export type Numbers = Float32Array | Float64Array;

export interface Tables {
  knots: Numbers;
  intercept: Numbers;
  weight: Numbers;
  mean: Numbers;
  quantiles: Numbers;
  gateMean: Numbers;
  variance: Numbers;
  residual: Numbers;
  scoreVariance: Numbers;
  additiveVariance: Numbers;
  influence: Numbers;
  typical: Numbers;
  agreement: Numbers;
}

export const QUANTILES = [0.05, 0.25, 0.5, 0.75, 0.95];

/** Return the bytes of a base64 text. */
export function bytesOf(text: string): ArrayBuffer {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes.buffer;
}

/** Return the numbers of a packed array. */
export function unpack(packed: PackedArray): Numbers {
  const buffer = bytesOf(packed.data);
  if (packed.type === "f64") return new Float64Array(buffer);
  if (packed.type === "f32") return new Float32Array(buffer);
  const stored = new Uint16Array(buffer);
  const out = new Float32Array(stored.length);
  const scale = packed.scale ?? 1;
  const offset = packed.offset ?? 0;
  for (let i = 0; i < stored.length; i++) out[i] = offset + scale * stored[i];
  return out;
}

/** Return the reader of a payload's arrays. */
export function reader(payload: Payload): (name: string) => Numbers {
  return (name) => {
    const packed = payload.arrays[name];
    if (!packed) throw new Error(`The page must hold the array ${name}.`);
    return unpack(packed);
  };
}

/** Return the tables of a payload beside those of its steps. */
export function unpackTables(get: (name: string) => Numbers): Tables {
  return {
    knots: get("knots"),
    intercept: get("intercept"),
    weight: get("weight"),
    mean: get("mean"),
    quantiles: get("quantiles"),
    gateMean: get("gateMean"),
    variance: get("variance"),
    residual: get("residual"),
    scoreVariance: get("scoreVariance"),
    additiveVariance: get("additiveVariance"),
    influence: get("influence"),
    typical: get("typical"),
    agreement: get("agreement"),
  };
}
