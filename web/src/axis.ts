/** One side of a map: where each value begins and ends, and what is written where. All places are shares of its length. */

import { shorten } from "./dom.ts";
import { apart, valueText } from "./format.ts";
import type { Line } from "./interaction.ts";
import { locateValue } from "./model.ts";
import type { Value } from "./payload.ts";
import { ticks } from "./scales.ts";

export interface Tick {
  at: number;
  text: string;
}

export interface Side {
  line: Line;
  /** Every value has the same room; otherwise places are to scale. */
  isEven: boolean;
  /** Where each value begins and ends. */
  spans: [number, number][];
  /** Return where a value of a row lies, or null when it is not shown. */
  place(value: Value): number | null;
}

const ROUND = 8; // round numbers along a side, about
const [GAP, STRIP] = [0.02, 0.06]; // beside the numbers: nothing, and *missing*

/** Return the side of a line: values and levels one by one, a number of many values to scale. */
export function sideOf(line: Line): Side {
  const { feature, position } = line;
  const isEven = feature.kind !== "number" || feature.isListed || knownOf(line).length < 2;
  if (isEven) {
    const room = 1 / position.length;
    return {
      line,
      isEven,
      spans: position.map((_, at) => [at * room, (at + 1) * room]),
      place(value) {
        const [slot, part] = locateValue(feature, value);
        const at = position.indexOf(Math.round(slot + part));
        return at < 0 ? null : (at + 0.5) * room;
      },
    };
  }
  const { edges, toShare } = scaled(line);
  const spans = knownOf(line).map((_, at): [number, number] => [toShare(edges[at]), toShare(edges[at + 1])]);
  if (feature.hasMissing) spans.push([1 - STRIP, 1]);
  return {
    line,
    isEven,
    spans,
    place(value) {
      if (value === null) return feature.hasMissing ? 1 - STRIP / 2 : null;
      const number = Number(value);
      return number >= edges[0] && number <= edges[edges.length - 1] ? toShare(number) : null;
    },
  };
}

function knownOf(line: Line): number[] {
  return line.values.filter((value) => value !== null).map(Number);
}

/** Return the edges half-way between the numbers of a line, and the map from numbers to shares of its length. */
function scaled(line: Line): { edges: number[]; toShare(number: number): number } {
  const known = knownOf(line);
  const last = known.length - 1;
  const edges = known.slice(1).map((number, n) => (number + known[n]) / 2);
  edges.unshift(known[0]);
  edges.push(known[last]);
  const room = line.feature.hasMissing ? 1 - GAP - STRIP : 1;
  const span = edges[edges.length - 1] - edges[0] || 1;
  return { edges, toShare: (number) => ((number - edges[0]) / span) * room };
}

/** Return which value lies at a share of the length, or -1 for none. */
export function valueAtShare(side: Side, share: number): number {
  return side.spans.findIndex(([from, to]) => share >= from && share < to);
}

/** Return ticks that do not overlap: `widthOf` says what share of the length a text takes. */
export function ticksOf(side: Side, most: number, widthOf: (text: string) => number, letters: number): Tick[] {
  return side.isEven ? evenTicks(side, most, widthOf, letters) : scaledTicks(side, most, widthOf);
}

/** Write every value, or every second, third, ... of them. */
function evenTicks(side: Side, most: number, widthOf: (text: string) => number, letters: number): Tick[] {
  const { line, spans } = side;
  const all = line.values.map((value, at): Tick => ({ at: middle(spans[at]), text: valueText(line.feature, value) }));
  const isNumber = line.feature.kind === "number";
  for (let step = 1; step < all.length; step++) {
    const room = Math.max((step / all.length - widthOf("")) / (widthOf("n") - widthOf("")), 6);
    const shown = all
      .filter((_, at) => at % step === 0)
      .map(({ at, text }) => ({ at, text: isNumber ? text : shorten(text, Math.floor(Math.min(room, letters))) }));
    if (shown.length <= most && !isCrowded(shown, widthOf)) return withMissing(shown, side, widthOf);
  }
  return all.slice(0, 1);
}

/** Write round numbers, fewer where they would overlap. */
function scaledTicks(side: Side, most: number, widthOf: (text: string) => number): Tick[] {
  const known = knownOf(side.line);
  for (let count = Math.min(most, ROUND); count > 0; count--) {
    const found = ticks([known[0], known[known.length - 1]], count).filter(
      (value) => !side.line.feature.integral || Number.isInteger(value),
    );
    const texts = apart(found);
    const shown = found.map((value, n) => ({ at: side.place(value) ?? 0, text: texts[n] }));
    if (!isCrowded(shown, widthOf)) return withMissing(shown, side, widthOf);
  }
  return [];
}

/** Write *missing*, the last value, in place of what stands too near to it. */
function withMissing(shown: Tick[], side: Side, widthOf: (text: string) => number): Tick[] {
  const { line, spans } = side;
  const last = line.values.length - 1;
  if (line.values[last] !== null) return shown;
  const tick = { at: middle(spans[last]), text: valueText(line.feature, null) };
  return [...shown.filter((one) => one.at < tick.at && !isCrowded([one, tick], widthOf)), tick];
}

function isCrowded(shown: Tick[], widthOf: (text: string) => number): boolean {
  return shown.some(
    ({ at, text }, n) => n > 0 && at - shown[n - 1].at < (widthOf(text) + widthOf(shown[n - 1].text)) / 2,
  );
}

function middle([from, to]: [number, number]): number {
  return (from + to) / 2;
}
