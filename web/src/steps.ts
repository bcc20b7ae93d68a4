/**
 * The steps from the cells of a row to the weights of its experts, as nae.tables.listing lists them.
 *
 * Every kind of step is a line in one of the tables LOOK_UPS, CHANGES and SHARES. Values are arrays (unit, member); the
 * units of logits are ordered (expert, feature).
 */

import { blend } from "./evaluate.ts";
import type { Cells } from "./model.ts";
import type { Numbers, Step } from "./payload.ts";

export interface Sizes {
  nFeatures: number;
  nExperts: number;
  nMembers: number;
  round: (value: number) => number;
}

/** The first step of a gate: bias plus terms. */
export interface Terms {
  terms: Numbers;
  bias: Numbers;
  /** Whether the terms of all features are added up. If not, no feature changes another one's logits. */
  sumsFeatures: boolean;
  lookUp: (cells: Cells) => Float64Array;
}

/** Some of the units of an array. */
interface Units {
  first: number;
  stride: number;
  count: number;
}

/** A later step of a gate: values from values. */
interface Change {
  isLinear: boolean;
  /** Return the new values, or some of them. */
  apply: (values: Float64Array, units?: Units) => Float64Array;
  /** Return the gradient by the old values, given that by the new ones, or by some of them. */
  pull: (slopes: Float64Array, values: Float64Array, units?: Units) => Float64Array;
}

/** From the logits of one feature, (expert, member), to the weights of its experts. */
export interface Share {
  /** Turn logits into weights, in place. */
  weigh: (logits: Float64Array) => Float64Array;
  /** The same where gradients are asked for: equal weights have none, so that of the softmax stands in. */
  weighSmoothly: (logits: Float64Array) => Float64Array;
}

/** From weights to contributions and bounds. */
export interface Mix {
  /** (slot, expert, output, member). */
  experts: Numbers;
  /** Bounds are means of so many of the smallest and of the largest experts. */
  nExtreme: number;
}

/** The range of the contributions at every slot, (slot, output) each. */
export interface Clamps {
  lower: Numbers;
  upper: Numbers;
}

export interface Gate extends Terms {
  share: Share;
  /** Terms of a feature. */
  width: number;
  /** Whether the logits are a sum of functions of one feature each. */
  isLinear: boolean;
  /** Return the logits of one feature, (expert, member), given the values after the first step. */
  logits: (hidden: Float64Array, i: number) => Float64Array;
  /** Return the gradient by those values, given that by the logits of one feature. */
  pull: (slopes: Float64Array, hidden: Float64Array, i: number) => Float64Array;
}

type Of<K extends Step["kind"]> = Extract<Step, { kind: K }>;
type Get = (name: string) => Numbers;

function sumTerms(step: Of<"sum_terms">, get: Get, { nFeatures, round }: Sizes): Terms {
  const [terms, bias] = [get(step.terms), get(step.bias)];
  const lookUp = (cells: Cells) => {
    const out = new Float64Array(bias.length);
    for (let i = 0; i < nFeatures; i++) blend(round, terms, out.length, cells, i, out, true);
    return out.map((value, at) => round(value + bias[at]));
  };
  return { terms, bias, sumsFeatures: true, lookUp };
}

function ownTerms(step: Of<"own_terms">, get: Get, { nExperts, nFeatures, nMembers, round }: Sizes): Terms {
  const [terms, bias] = [get(step.terms), get(step.bias)];
  const lookUp = (cells: Cells) => {
    const out = new Float64Array(bias.length);
    const own = new Float64Array(nExperts * nMembers);
    for (let i = 0; i < nFeatures; i++) {
      blend(round, terms, own.length, cells, i, own);
      for (let k = 0; k < nExperts; k++) {
        for (let m = 0; m < nMembers; m++) {
          const at = (k * nFeatures + i) * nMembers + m;
          out[at] = round(own[k * nMembers + m] + bias[at]);
        }
      }
    }
    return out;
  };
  return { terms, bias, sumsFeatures: false, lookUp };
}

const LOOK_UPS = { sum_terms: sumTerms, own_terms: ownTerms };

function rectify(): Change {
  return {
    isLinear: false,
    apply: (values) => values.map((value) => Math.max(value, 0)),
    pull: (slopes, values) => slopes.map((slope, at) => (values[at] > 0 ? slope : 0)),
  };
}

function multiply(step: Of<"multiply">, get: Get, { nMembers }: Sizes): Change {
  const [matrix, bias] = [get(step.matrix), get(step.bias)]; // (member, unit before, unit after), (unit after, member)
  const nAfter = bias.length / nMembers;
  const nBefore = matrix.length / bias.length;
  const all = { first: 0, stride: 1, count: nAfter };
  return {
    isLinear: true,
    apply: (values, { first, stride, count } = all) => {
      const out = new Float64Array(count * nMembers);
      for (let m = 0; m < nMembers; m++) {
        for (let h = 0; h < nBefore; h++) {
          const row = (m * nBefore + h) * nAfter + first;
          const value = values[h * nMembers + m];
          for (let n = 0; n < count; n++) out[n * nMembers + m] += value * matrix[row + n * stride];
        }
        for (let n = 0; n < count; n++) out[n * nMembers + m] += bias[(first + n * stride) * nMembers + m];
      }
      return out;
    },
    pull: (slopes, values, { first, stride, count } = all) => {
      const out = new Float64Array(values.length);
      for (let m = 0; m < nMembers; m++) {
        for (let h = 0; h < nBefore; h++) {
          const row = (m * nBefore + h) * nAfter + first;
          for (let n = 0; n < count; n++) out[h * nMembers + m] += slopes[n * nMembers + m] * matrix[row + n * stride];
        }
      }
      return out;
    },
  };
}

/** Take some of the values: what gives the logits of one feature where no other step does. */
function take({ nFeatures, nExperts, nMembers }: Sizes): Change {
  const all = { first: 0, stride: 1, count: nExperts * nFeatures };
  const move = (from: Float64Array, to: Float64Array, { first, stride, count }: Units, isBack: boolean) => {
    for (let n = 0; n < count; n++) {
      for (let m = 0; m < nMembers; m++) {
        const [at, within] = [n * nMembers + m, (first + n * stride) * nMembers + m];
        if (isBack) to[within] = from[at];
        else to[at] = from[within];
      }
    }
    return to;
  };
  return {
    isLinear: true,
    apply: (values, units = all) => move(values, new Float64Array(units.count * nMembers), units, false),
    pull: (slopes, values, units = all) => move(slopes, new Float64Array(values.length), units, true),
  };
}

const CHANGES = { rectify, multiply };

/** Return which of a member's logits are among the `nActive` largest; of equal ones the first wins. */
function isActive(logits: Float64Array, { nExperts, nMembers }: Sizes, m: number, nActive: number): boolean[] {
  const order = Array.from({ length: nExperts }, (_, k) => k);
  order.sort((a, b) => logits[b * nMembers + m] - logits[a * nMembers + m] || a - b);
  const out = new Array<boolean>(nExperts).fill(false);
  for (const k of order.slice(0, nActive)) out[k] = true;
  return out;
}

/** Return the weighing that gives an active expert a share of `raise(logit - most)`. */
function weighing(nActive: number, sizes: Sizes, raise: (below: number) => number): Share["weigh"] {
  const { nExperts, nMembers } = sizes;
  return (logits) => {
    for (let m = 0; m < nMembers; m++) {
      const active = nActive < nExperts ? isActive(logits, sizes, m, nActive) : null;
      let most = Number.NEGATIVE_INFINITY;
      for (let k = 0; k < nExperts; k++) most = Math.max(most, logits[k * nMembers + m]);
      let total = 0;
      for (let k = 0; k < nExperts; k++) {
        const at = k * nMembers + m;
        logits[at] = active === null || active[k] ? raise(logits[at] - most) : 0;
        total += logits[at];
      }
      for (let k = 0; k < nExperts; k++) logits[k * nMembers + m] /= total;
    }
    return logits;
  };
}

function softmax({ n_active }: Of<"softmax">, sizes: Sizes): Share {
  const weigh = weighing(n_active, sizes, Math.exp);
  return { weigh, weighSmoothly: weigh };
}

function equal({ n_active }: Of<"equal">, sizes: Sizes): Share {
  return {
    weigh: weighing(n_active, sizes, () => 1),
    weighSmoothly: weighing(sizes.nExperts, sizes, Math.exp),
  };
}

const SHARES = { softmax, equal };

function mix(step: Of<"mix">, get: Get): Mix {
  return { experts: get(step.experts), nExtreme: step.n_extreme };
}

const MIXES = { mix };

function clip(step: Of<"clip">, get: Get): Clamps {
  return { lower: get(step.lower), upper: get(step.upper) };
}

const CLIPS = { clip };

const KNOWN: Record<Step["kind"], unknown> = {
  ...LOOK_UPS,
  ...CHANGES,
  ...SHARES,
  ...MIXES,
  ...CLIPS,
  one_expert: null,
};

/** Return the step of a table's kinds, made by what stands in the table. */
function make<T>(table: object, steps: Step[], ...more: unknown[]): T[] {
  const makers = table as Record<string, (...given: unknown[]) => T>;
  return steps.filter((step) => step.kind in table).map((step) => makers[step.kind](step, ...more));
}

/** Return how a model mixes its experts. */
export function buildMix(steps: Step[], get: Get): Mix {
  const unknown = steps.find((step) => !(step.kind in KNOWN));
  if (unknown) throw new Error(`This page does not know the step ${unknown.kind}.`);
  return make<Mix>(MIXES, steps, get)[0];
}

/** Return the range of the contributions; null where the experts alone bound them. */
export function buildClamps(steps: Step[], get: Get): Clamps | null {
  return make<Clamps>(CLIPS, steps, get)[0] ?? null;
}

/** Return gate and routing of a model; null where every feature has only one expert. */
export function buildGate(steps: Step[], nSlots: number, get: Get, sizes: Sizes): Gate | null {
  const [first] = make<Terms>(LOOK_UPS, steps, get, sizes);
  const [share] = make<Share>(SHARES, steps, sizes);
  if (!first || !share) return null;
  const changes = make<Change>(CHANGES, steps, get, sizes);
  if (!changes.length) changes.push(take(sizes));
  const last = changes.length - 1;
  /** Return the values before every change, and the logits of one feature after the last. */
  const follow = (hidden: Float64Array, own: Units): Float64Array[] => {
    const values = [hidden];
    changes.forEach((change, at) => {
      values.push(change.apply(values[at], at === last ? own : undefined));
    });
    return values;
  };
  const unitsOf = (i: number): Units => ({ first: i, stride: sizes.nFeatures, count: sizes.nExperts });
  return {
    ...first,
    share,
    width: first.terms.length / nSlots / sizes.nMembers,
    isLinear: changes.every((change) => change.isLinear),
    logits: (hidden, i) => follow(hidden, unitsOf(i))[last + 1],
    pull: (slopes, hidden, i) => {
      const [own, values] = [unitsOf(i), follow(hidden, unitsOf(i))];
      return changes.reduceRight(
        (found, change, at) => change.pull(found, values[at], at === last ? own : undefined),
        slopes,
      );
    },
  };
}
