/** The shape of a feature: mean effect, guaranteed band, where most effects lie, and how many rows are where. */

import { s, shorten } from "./dom.ts";
import { boundsOf, clipAt } from "./evaluate.ts";
import { apart, decimalsFor, sharePercent, signed, valueText } from "./format.ts";
import { barsOf } from "./histogram.ts";
import { centralRange } from "./interaction.ts";
import type { Feature, Model } from "./model.ts";
import { QUANTILES } from "./payload.ts";
import { linear, padded, type Scale, ticks } from "./scales.ts";

export interface ShapePoint {
  label: string;
  role: "value" | "other" | "missing" | "unseen";
  number: number;
  share: number;
  mean: number;
  lower: number;
  upper: number;
  low: number;
  high: number;
  /** Where the true effect lies with 90 % confidence; NaN if it is unknown. */
  sureLow: number;
  sureHigh: number;
}

export interface Shape {
  feature: Feature;
  points: ShapePoint[];
}

/** Return whether a feature lies along a line: a number, but not a flag, which has nothing between 0 and 1. */
export function isCurve({ kind, integral, isListed, knots }: Feature): boolean {
  return kind === "number" && !(isListed && integral && knots.length === 2 && knots[1] - knots[0] === 1);
}

/** Return the shape of a feature for one output, read from the tables. */
export function shapeOf(model: Model, feature: Feature, o: number): Shape {
  const { tables, nOutputs, nExperts, nMembers, nSlots } = model;
  const total = feature.order.reduce((sum, slot) => sum + tables.weight[feature.start + slot], 0) || 1;
  const width = nExperts * nOutputs * nMembers;
  const last = QUANTILES.length - 1;
  const points = feature.order.map((slot): ShapePoint => {
    const at = feature.start + slot;
    const clip = clipAt(model, { slot: Int32Array.of(at), fraction: new Float64Array(1) }, 0);
    const [lower, upper] = boundsOf(model, model.mix.experts, at * width, o).map((bound) => clip(bound, o));
    const isOther = feature.kind === "category" && slot === feature.levels.length && slot < feature.nValues;
    return {
      label: feature.labels[slot],
      role: slot === feature.nValues ? "missing" : slot > feature.nValues ? "unseen" : isOther ? "other" : "value",
      number: slot < feature.knots.length ? feature.knots[slot] : Number.NaN,
      share: tables.weight[at] / total,
      mean: tables.mean[at * nOutputs + o],
      lower,
      upper,
      low: tables.quantiles[at * nOutputs + o],
      high: tables.quantiles[(last * nSlots + at) * nOutputs + o],
      sureLow: feature.sure?.lower[slot][o] ?? Number.NaN,
      sureHigh: feature.sure?.upper[slot][o] ?? Number.NaN,
    };
  });
  if (isCurve(feature)) {
    const known = points.filter((point) => point.role === "value");
    const rest = known.map((point, n) =>
      QUANTILES.map(
        (_, q) => tables.quantiles[(q * nSlots + feature.start + feature.order[n]) * nOutputs + o] - point.mean,
      ),
    );
    spread(
      rest,
      known.map((point) => point.share),
    ).forEach(([low, high], n) => {
      const point = known[n];
      point.low = Math.min(Math.max(point.mean + low, point.lower), point.upper);
      point.high = Math.min(Math.max(point.mean + high, point.lower), point.upper);
    });
  }
  return { feature, points };
}

const REACH = 0.04; // share of the rows, on either side, that say how far effects spread at a knot

/**
 * Return the outer quantiles of what rows near each knot add to the mean effect there, as the plots do.
 *
 * The quantiles of a knot with three rows are just these rows, and their outline is a comb. So a knot draws on those
 * around it: each speaks for its rows by its quantiles, less the farther it is.
 */
export function spread(rest: number[][], shares: number[]): [number, number][] {
  let sum = 0;
  const at = shares.map((share) => {
    sum += share;
    return sum - share / 2;
  });
  const middle = QUANTILES.slice(1).map((level, q) => (level + QUANTILES[q]) / 2);
  const mass = [...middle, 1].map((end, q) => end - (q ? middle[q - 1] : 0));
  let first = 0;
  return at.map((place): [number, number] => {
    const found: [number, number][] = [];
    while (at[first] <= place - REACH) first++;
    for (let n = first; n < at.length && at[n] < place + REACH; n++) {
      const share = shares[n] * (1 - Math.abs(at[n] - place) / REACH);
      if (share > 0) found.push(...rest[n].map((value, q): [number, number] => [value, share * mass[q]]));
    }
    found.sort((a, b) => a[0] - b[0]);
    const total = found.reduce((whole, [, share]) => whole + share, 0);
    const quantile = (level: number): number => {
      let below = 0;
      for (const [value, share] of found) {
        below += share;
        if (below >= level * total) return value;
      }
      return found.length ? found[found.length - 1][0] : 0;
    };
    return [quantile(QUANTILES[0]), quantile(QUANTILES[QUANTILES.length - 1])];
  });
}

/** Return the range that a chart of the shape needs. */
export function rangeOf(shape: Shape): [number, number] {
  const shown = shape.points.filter((point) => point.role !== "unseen" && !(point.role === "missing" && !point.share));
  const ends = shown.flatMap((point) => [point.lower, point.upper, point.mean, point.sureLow, point.sureHigh]);
  return padded(ends.filter((end) => !Number.isNaN(end)));
}

const WIDTH = 400;
const HEIGHT = 236;
const MARGIN = { left: 46, right: 12, top: 10, bottom: 46 };
const DENSITY = 26;

function path(points: [number, number][]): string {
  return points.map(([x, y], n) => `${n ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
}

function ribbon(points: ShapePoint[], x: Scale, y: Scale, low: "lower" | "low", high: "upper" | "high"): string {
  const top = points.map((point): [number, number] => [x(point.number), y(point[high])]);
  const bottom = points.map((point): [number, number] => [x(point.number), y(point[low])]);
  return `${path([...top, ...bottom.reverse()])}Z`;
}

/** Return an end of the band of the true effect; nothing where it is unknown. */
function sureLine(points: ShapePoint[], x: Scale, y: Scale, end: "sureLow" | "sureHigh"): string {
  return path(
    points
      .filter((point) => !Number.isNaN(point[end]))
      .map((point): [number, number] => [x(point.number), y(point[end])]),
  );
}

/** Return the numbers to show: every listed value with room for its bar, otherwise the central part. */
function rangeOfValues(model: Model, feature: Feature): [number, number] {
  const { knots, isListed } = feature;
  const last = knots.length - 1;
  if (isListed && last > 0) {
    const half = Math.min(...Array.from(knots.subarray(1), (knot, n) => knot - knots[n])) / 2;
    return [knots[0] - half, knots[last] + half];
  }
  const [low, high] = centralRange(model, feature);
  return high > low ? [low, high] : [knots[0] - 0.5, knots[last] + 0.5];
}

/** Return the points inside a range. */
function clip(points: ShapePoint[], [low, high]: [number, number]): ShapePoint[] {
  return points.filter((point) => point.number >= low && point.number <= high);
}

interface Written {
  value: number;
  text: string;
}

const LETTER = 6; // pixels

function written(values: number[]): Written[] {
  const texts = apart(values);
  return values.map((value, n) => ({ value, text: texts[n] }));
}

function isNear(x: Scale, one: Written, other: Written): boolean {
  return Math.abs(x(other.value) - x(one.value)) < (LETTER * (one.text.length + other.text.length + 2)) / 2;
}

/** Return what to write along numbers: listed values where there is room for them, otherwise round numbers. */
function ticksOf({ knots, isListed, integral }: Feature, x: Scale): Written[] {
  if (isListed) {
    const all = written(Array.from(knots));
    const roomy: Written[] = [];
    for (const one of all) if (!roomy.length || !isNear(x, roomy[roomy.length - 1], one)) roomy.push(one);
    const steps = all.slice(1).map(({ value }, n) => value - knots[n]);
    const isEven = Math.max(...steps) < 1.01 * Math.min(...steps);
    if (roomy.length === all.length || (integral && !isEven)) return roomy;
  }
  return written(ticks(x.domain, 5).filter((value) => !integral || Number.isInteger(value)));
}

/** Return both axes; nothing is written beyond `end`, where *missing* stands. */
function axes(feature: Feature, x: Scale, y: Scale, right: number, end: number): SVGGElement {
  const group = s("g", { class: "axes", "aria-hidden": "true" });
  const decimals = decimalsFor((y.domain[1] - y.domain[0]) * 8);
  for (const value of ticks(y.domain, 5)) {
    group.append(
      s("line", { class: value === 0 ? "zero" : "grid", x1: MARGIN.left, x2: right, y1: y(value), y2: y(value) }),
      s("text", { x: MARGIN.left - 6, y: y(value) + 3.5, "text-anchor": "end" }, signed(value, decimals)),
    );
  }
  const bottom = HEIGHT - MARGIN.bottom + DENSITY;
  for (const { value, text } of ticksOf(feature, x)) {
    if (x(value) + (LETTER * text.length) / 2 > end) continue;
    group.append(
      s("line", { class: "tick", x1: x(value), x2: x(value), y1: bottom, y2: bottom + 3 }),
      s("text", { x: x(value), y: bottom + 14, "text-anchor": "middle" }, text),
    );
  }
  return group;
}

function meanDot(cx: number, cy: number, r: number): SVGCircleElement {
  return s("circle", { class: "mean-dot", cx, cy, r });
}

function aside(points: ShapePoint[], y: Scale, from: number): SVGGElement {
  const group = s("g", { class: "aside" });
  points.forEach((point, n) => {
    const x = from + 20 + n * 34;
    group.append(
      s("line", { class: "whisker", x1: x, x2: x, y1: y(point.lower), y2: y(point.upper) }),
      ...(Number.isNaN(point.sureLow)
        ? []
        : [s("line", { class: "sure", x1: x, x2: x, y1: y(point.sureLow), y2: y(point.sureHigh) })]),
      meanDot(x, y(point.mean), 4),
      s("text", { x, y: HEIGHT - MARGIN.bottom + DENSITY + 14, "text-anchor": "middle" }, point.label),
    );
  });
  return group;
}

function interpolated(points: ShapePoint[], at: number): ShapePoint {
  const after = points.findIndex((point) => point.number >= at);
  if (after <= 0) return points[after === 0 ? 0 : points.length - 1];
  const [a, b] = [points[after - 1], points[after]];
  const part = (at - a.number) / (b.number - a.number || 1);
  const mix = (key: "mean" | "lower" | "upper" | "low" | "high" | "sureLow" | "sureHigh") =>
    a[key] + (b[key] - a[key]) * part;
  return {
    ...b,
    number: at,
    mean: mix("mean"),
    lower: mix("lower"),
    upper: mix("upper"),
    low: mix("low"),
    high: mix("high"),
    sureLow: mix("sureLow"),
    sureHigh: mix("sureHigh"),
  };
}

function nearest(points: ShapePoint[], at: number): ShapePoint {
  return points.reduce((best, point) => (Math.abs(point.number - at) < Math.abs(best.number - at) ? point : best));
}

/** Return a sentence about a point, for the reading line under a chart. */
export function describe(shape: Shape, point: ShapePoint, decimals: number): string {
  const value = point.role === "value" && !Number.isNaN(point.number) ? point.number : point.label;
  const text = typeof value === "number" ? valueText(shape.feature, value) : shorten(value, 60);
  const band =
    point.upper - point.lower > 1e-12
      ? `, always between ${signed(point.lower, decimals)} and ${signed(point.upper, decimals)}`
      : "";
  const isBetween = shape.feature.kind === "number" && !shape.feature.isListed && point.role === "value";
  const rows = isBetween ? "" : `; ${sharePercent(point.share)} of rows`;
  const sure = Number.isNaN(point.sureLow)
    ? ""
    : `; the true effect, 90 % sure: ${signed(point.sureLow, decimals)} to ${signed(point.sureHigh, decimals)}`;
  return `${text}: ${signed(point.mean, decimals)} on average${band}${sure}${rows}`;
}

/** Return the chart of a number, with a cursor for pointer and arrow keys. */
export function drawNumber(model: Model, shape: Shape, range: [number, number], reading: HTMLElement): SVGSVGElement {
  const known = shape.points.filter((point) => point.role === "value");
  const extra = shape.points.filter((point) => point.role === "missing" && point.share > 0);
  const right = WIDTH - MARGIN.right - extra.length * 48;
  const { isListed } = shape.feature;
  const [low, high] = rangeOfValues(model, shape.feature);
  const x = linear([low, high], [MARGIN.left, right]);
  const bottom = HEIGHT - MARGIN.bottom;
  const y = linear(range, [bottom - 6, MARGIN.top]);
  const inside = clip(known, [low, high]);
  const ends = inside.length ? inside : known;
  const cursor = s("g", { class: "cursor", visibility: "hidden" });
  const svg = s("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    class: "shape",
    role: "img",
    tabindex: 0,
    "aria-label": `Effect of ${shape.feature.name}. Arrow keys read it value by value.`,
  });
  const density = s("g", { class: "density" });
  for (const bar of barsOf(known, [low, high], isListed)) {
    const wide = Math.max(x(bar.right) - x(bar.left) - (isListed ? 0 : 0.8), 1.2);
    const tall = bar.height * DENSITY;
    const from = (x(bar.left) + x(bar.right) - wide) / 2;
    density.append(s("rect", { x: from, y: bottom + DENSITY - tall, width: wide, height: tall }));
  }
  const dots = s("g", {});
  if (isListed) for (const { number, mean } of known) dots.append(meanDot(x(number), y(mean), 2.6));
  svg.append(
    axes(shape.feature, x, y, right, extra.length ? right : WIDTH),
    density,
    s("path", { class: "band", d: ribbon(ends, x, y, "lower", "upper") }),
    s("path", { class: "inner", d: ribbon(ends, x, y, "low", "high") }),
    ...(["sureLow", "sureHigh"] as const).map((end) => s("path", { class: "sure", d: sureLine(ends, x, y, end) })),
    s("path", { class: "mean", d: path(ends.map((point) => [x(point.number), y(point.mean)])) }),
    dots,
    aside(extra, y, right),
    cursor,
  );
  const decimals = decimalsFor(range[1] - range[0]);
  const show = (value: number): void => {
    const point = isListed ? nearest(known, value) : interpolated(known, Math.min(Math.max(value, low), high));
    cursor.replaceChildren(
      s("line", { x1: x(point.number), x2: x(point.number), y1: MARGIN.top, y2: bottom + DENSITY }),
      s("circle", { cx: x(point.number), cy: y(point.mean), r: 3.5 }),
    );
    cursor.setAttribute("visibility", "visible");
    reading.textContent = describe(shape, point, decimals);
  };
  followPointer(svg, cursor, reading, (px) => {
    const slot = Math.round((px - right - 20) / 34);
    if (px > right + 4 && extra[slot]) reading.textContent = describe(shape, extra[slot], decimals);
    else show(x.invert(px));
  });
  let at = isListed ? nearest(known, (low + high) / 2).number : (low + high) / 2;
  svg.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    if (isListed) {
      const next = known.indexOf(nearest(known, at)) + step;
      at = known[Math.min(Math.max(next, 0), known.length - 1)].number;
    } else at = Math.min(Math.max(at + (step * (high - low)) / 40, low), high);
    show(at);
  });
  return svg;
}

function followPointer(svg: SVGSVGElement, cursor: SVGGElement, reading: HTMLElement, show: (x: number) => void): void {
  const rest = reading.textContent ?? "";
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    show(((event.clientX - box.left) / box.width) * WIDTH);
  });
  const leave = (): void => {
    cursor.setAttribute("visibility", "hidden");
    reading.textContent = rest;
  };
  svg.addEventListener("pointerleave", leave);
  svg.addEventListener("blur", leave);
}
