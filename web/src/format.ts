/** Numbers in the reader's own locale. */

import type { Feature } from "./model.ts";
import type { Value } from "./payload.ts";

const cache = new Map<string, Intl.NumberFormat>();

function formatter(options: Intl.NumberFormatOptions): Intl.NumberFormat {
  const key = JSON.stringify(options);
  let found = cache.get(key);
  if (!found) {
    found = new Intl.NumberFormat(undefined, options);
    cache.set(key, found);
  }
  return found;
}

/** Return a number with `digits` telling digits. */
export function number(value: number, digits = 4): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e15 || size < 1e-6)) {
    return formatter({ notation: "scientific", maximumSignificantDigits: digits }).format(value);
  }
  if (size >= 10 ** digits) return formatter({ maximumFractionDigits: 0 }).format(value);
  return formatter({ maximumSignificantDigits: digits }).format(value);
}

export function whole(value: number): string {
  return formatter({ maximumFractionDigits: 0 }).format(value);
}

/** Return texts of numbers with as many telling digits, at least `digits`, as set different ones apart. */
export function apart(values: number[], digits = 4): string[] {
  const different = new Set(values).size;
  for (let more = digits; more < 15; more++) {
    const texts = values.map((value) => number(value, more));
    if (new Set(texts).size === different) return texts;
  }
  return values.map((value) => number(value, 15));
}

/** Return how many decimals tell apart what lies within `span`. */
export function decimalsFor(span: number): number {
  if (!Number.isFinite(span) || span <= 0) return 2;
  return Math.min(Math.max(2 - Math.floor(Math.log10(span)), 0), 12);
}

/** Return a number with so many decimals; what rounds to zero has no sign. */
export function fixed(value: number, decimals: number): string {
  const shown = Math.abs(value) < 0.5 * 10 ** -decimals ? 0 : value;
  return formatter({ minimumFractionDigits: decimals, maximumFractionDigits: decimals }).format(shown);
}

/** Return a number with its sign. */
export function signed(value: number, decimals: number): string {
  return formatter({
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
    signDisplay: "exceptZero",
  }).format(value);
}

export function percent(share: number, decimals = 0): string {
  return formatter({ style: "percent", maximumFractionDigits: decimals }).format(share);
}

/** Return a share in a way that never says 0 % or 100 % of what is not quite so. */
export function sharePercent(share: number): string {
  if (share > 0 && share < 0.01) return `< ${percent(0.01)}`;
  if (share < 1 && share > 0.99) return `> ${percent(0.99)}`;
  return percent(share);
}

/** Return a value of a feature as a reader writes it. */
export function valueText(feature: Feature, value: Value): string {
  if (value === null || value === undefined) return feature.labels[feature.nValues];
  if (feature.kind === "boolean") return Number(value) ? "True" : "False";
  if (feature.kind === "category") return String(value);
  const size = Math.abs(Number(value));
  // Years and codes read badly with separators.
  if (feature.integral && size < 10_000) return formatter({ useGrouping: false }).format(Number(value));
  return number(Number(value), feature.digits);
}
