/** A forest plot: for every feature, what it can add to the score for any input, and what it adds on most rows. */

import { h, name } from "./dom.ts";
import { decimalsFor, fixed, number, signed } from "./format.ts";
import type { Feature } from "./model.ts";
import { linear, padded, type Scale, ticks } from "./scales.ts";
import { shapeOf } from "./shape.ts";
import type { State } from "./state.ts";

const USUAL = 0.9; // the share of the training rows in the dark part
const [FAR, CUT] = [3, 1.5]; // times the second farthest reach: where an axis is cut off, and how far it then goes

interface Row {
  feature: Feature;
  low: number;
  high: number;
  usual: [number, number];
  /** The most that the feature alone moves the score; null where that is not known. */
  effect: number | null;
  promised: number | null;
}

function rowsOf(state: State): Row[] {
  const { payload, nOutputs } = state.model;
  const isPairwise = payload.classes.length > 2;
  const limits = new Map(payload.never.limits.filter((one) => one.output === state.output).map((l) => [l.feature, l]));
  return payload.never.shown.map((at) => {
    const feature = state.model.features[at];
    const cap = payload.caps[isPairwise ? at : at * nOutputs + state.output];
    const inside = (value: number): number => Math.min(Math.max(value, cap.takes), cap.adds);
    const [low, high] = usualRange(state, feature);
    const { effect, promised } = limits.get(at) ?? { effect: null, promised: null };
    return { feature, low: cap.takes, high: cap.adds, usual: [inside(low), inside(high)], effect, promised };
  });
}

/** Return where nine in ten contributions of a feature lie: their quantiles at every value, by its weight. */
function usualRange(state: State, feature: Feature): [number, number] {
  const parts = shapeOf(state.model, feature, state.output)
    .points.flatMap(({ low, mean, high, share }) => [
      { value: low, weight: share / 4 },
      { value: mean, weight: share / 2 },
      { value: high, weight: share / 4 },
    ])
    .sort((a, b) => a.value - b.value);
  const total = parts.reduce((sum, part) => sum + part.weight, 0);
  const at = (level: number): number => {
    let sum = 0;
    for (const { value, weight } of parts) {
      sum += weight;
      if (sum >= level * total) return value;
    }
    return 0;
  };
  return [at((1 - USUAL) / 2), at((1 + USUAL) / 2)];
}

/** Return a number rounded up, so that "at most" stays true. */
export function roundedUp(value: number, decimals: number): string {
  return fixed(Math.ceil(value * 10 ** decimals - 1e-9) / 10 ** decimals, decimals);
}

function mark(className: string, scale: Scale, from: number, to?: number): HTMLElement {
  const element = h("i", { class: className });
  element.style.left = `${scale(from)}%`;
  if (to !== undefined) element.style.width = `${Math.max(scale(to) - scale(from), 0)}%`;
  return element;
}

function drawRow(row: Row, scale: Scale, decimals: number): HTMLElement {
  const { feature, low, high, usual, effect, promised } = row;
  const spare = spareOf(row);
  const most = effect === null ? "" : effect === 0 ? "0" : roundedUp(effect, decimals);
  const label = [
    `${feature.name}: between ${signed(low, decimals)} and ${signed(high, decimals)} for any input`,
    `nine in ten training rows between ${signed(usual[0], decimals)} and ${signed(usual[1], decimals)}`,
    most && `alone it moves the score by at most ${most}`,
    promised === null ? "" : `at most ${number(promised)} was promised`,
  ];
  return h(
    "li",
    { class: promised === null ? "forest-row" : "forest-row is-promised" },
    h("span", { class: "forest-name" }, name(feature.name)),
    h(
      "span",
      { class: "forest-track", role: "img", "aria-label": label.filter(Boolean).join("; ") },
      mark("forest-zero", scale, 0),
      mark("forest-range", scale, Math.max(low, scale.domain[0]), Math.min(high, scale.domain[1])),
      low < scale.domain[0] ? h("b", { class: "forest-beyond left" }, `← ${number(low, 3)}`) : null,
      high > scale.domain[1] ? h("b", { class: "forest-beyond right" }, `${number(high, 3)} →`) : null,
      mark("forest-usual", scale, usual[0], usual[1]),
      promised === null ? null : mark("forest-cap", scale, low - spare, high + spare),
    ),
    h("span", { class: "forest-number" }, most && `≤ ${most}`),
  );
}

/** Return the domain of the axis. One feature that reaches much farther than all others is cut off. */
function domainOf(rows: Row[]): [number, number] {
  const ends = rows.map((row): [number, number] => {
    const spare = spareOf(row);
    return [row.low - spare, row.high + spare];
  });
  const sides = [0, 1].map((side) => {
    const [first = 0, second = 0] = ends.map((end) => Math.abs(end[side])).sort((a, b) => b - a);
    return second > 0 && first > FAR * second ? CUT * second : first;
  });
  return padded([-sides[0], sides[1]], 0.04);
}

/** Return how much room a promised cap leaves on either side of what the feature can add. */
function spareOf({ low, high, promised }: Row): number {
  return promised === null ? 0 : Math.max(promised - (high - low), 0) / 2;
}

/** Return the forest plot of the most important features. */
export function drawForest(state: State, unit: string): HTMLElement {
  const rows = rowsOf(state);
  const isPairwise = state.model.payload.classes.length > 2;
  const domain = domainOf(rows);
  const scale = linear(domain, [0, 100]);
  const decimals = decimalsFor(domain[1] - domain[0]);
  const marks = ticks(domain, 6).map((value) => {
    const tick = h("span", {}, number(value));
    tick.style.left = `${scale(value)}%`;
    return tick;
  });
  return h(
    "div",
    { class: isPairwise ? "forest no-numbers" : "forest" },
    h(
      "p",
      { class: "legend" },
      h("span", {}, h("i", { class: "key forest-key-range" }), "for any input"),
      h(
        "span",
        {},
        h("i", { class: "key forest-key-usual" }),
        `nine in ten training rows${isPairwise ? `, for the ${state.unit}` : ""}`,
      ),
      rows.some((row) => row.promised !== null)
        ? h("span", {}, h("i", { class: "key forest-key-cap" }), "the promised cap")
        : null,
      rows.some((row) => row.effect !== null)
        ? h("span", {}, h("b", {}, "≤"), ` the most that it moves the ${unit} alone, also through other features`)
        : null,
    ),
    h("ul", { class: "forest-rows" }, ...rows.map((row) => drawRow(row, scale, decimals))),
    h("div", { class: "forest-axis", "aria-hidden": "true" }, h("span", { class: "forest-ticks" }, ...marks)),
  );
}
