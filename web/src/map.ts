/** A map of two features: colour says what they add together, dots show rows, and colours fade where no rows lie. */

import { type Side, sideOf, ticksOf, valueAtShare } from "./axis.ts";
import { s, shorten } from "./dom.ts";
import type { Line } from "./interaction.ts";
import type { Value } from "./payload.ts";
import { diverging, faded } from "./scales.ts";

export interface MapOptions {
  width: number;
  height: number;
  isDark: boolean;
  /** The largest size of a value: the end of the colours. */
  most: number;
  /** How near rows are to every point, 0 to 1. */
  near: Float64Array;
  /** Rows as values of the two features. */
  rows: [Value, Value][];
  label: string;
  read(x: number, y: number): void;
  leave(): void;
}

const MARGIN = { right: 14, top: 8, bottom: 40 };
const [LETTER, HIGH] = [6.4, 15]; // room for a letter along x and for a line along y, in pixels

/** Where a map stands in its picture. */
interface Frame {
  x: Side;
  y: Side;
  left: number;
  wide: number;
  tall: number;
}

/** Return the map; `values` has the second line's values innermost. */
export function drawMap(lines: Line[], values: Float64Array, options: MapOptions): SVGSVGElement {
  const { width, height } = options;
  const [x, y] = [sideOf(lines[0]), sideOf(lines[1])];
  const tall = height - MARGIN.top - MARGIN.bottom;
  const yTicks = ticksOf(y, Math.floor(tall / 20), () => HIGH / tall, width < 400 ? 12 : 18);
  const left = 30 + LETTER * Math.max(...yTicks.map((tick) => tick.text.length), 2);
  const frame: Frame = { x, y, left, wide: width - left - MARGIN.right, tall };
  const svg = s("svg", {
    viewBox: `0 0 ${width} ${height}`,
    class: "map",
    role: "img",
    tabindex: 0,
    "aria-label": `${options.label}. Arrow keys read it point by point.`,
  });
  const cells = s("g", { "shape-rendering": "crispEdges" });
  const ny = lines[1].position.length;
  x.spans.forEach((_, a) => {
    y.spans.forEach((_, b) => {
      const at = a * ny + b;
      const fill = faded(diverging(values[at] / (options.most || 1), options.isDark), options.near[at], options.isDark);
      cells.append(s("rect", { ...boxOf(frame, a, b, 0.3), fill }));
    });
  });
  const cursor = s("rect", { class: "map-cursor", visibility: "hidden" });
  svg.append(cells, dotsOf(frame, options.rows), axisLabels(frame, yTicks, options), cursor);
  listen(svg, cursor, frame, options);
  return svg;
}

/** Return the box of a value of each side, in pixels. */
function boxOf(frame: Frame, a: number, b: number, more = 0): Record<"x" | "y" | "width" | "height", number> {
  const [[from, to], [low, high]] = [frame.x.spans[a], frame.y.spans[b]];
  return {
    x: frame.left + from * frame.wide,
    y: MARGIN.top + (1 - high) * frame.tall,
    width: (to - from) * frame.wide + more,
    height: (high - low) * frame.tall + more,
  };
}

/** Return how far a dot is set off within the room of a value, where many would lie on each other. */
function scatter(side: Side, n: number, step: number): number {
  return side.isEven ? (0.7 * (((n * step) % 1) - 0.5)) / side.spans.length : 0;
}

function dotsOf(frame: Frame, rows: [Value, Value][]): SVGGElement {
  const dots = s("g", { class: "dots" });
  rows.forEach((row, n) => {
    const [x, y] = [frame.x.place(row[0]), frame.y.place(row[1])];
    if (x === null || y === null) return;
    dots.append(
      s("circle", {
        cx: frame.left + (x + scatter(frame.x, n, 0.618)) * frame.wide,
        cy: MARGIN.top + (1 - y - scatter(frame.y, n, 0.414)) * frame.tall,
        r: 1.3,
      }),
    );
  });
  return dots;
}

function axisLabels(frame: Frame, yTicks: { at: number; text: string }[], { width, height }: MapOptions): SVGGElement {
  const { x, y, left, wide, tall } = frame;
  const group = s("g", { class: "axes", "aria-hidden": "true" });
  const bottom = height - MARGIN.bottom;
  const xTicks = ticksOf(x, Math.ceil(wide / 36), (text) => ((text.length + 1.5) * LETTER) / wide, 22);
  for (const { at, text } of xTicks) {
    const place = left + at * wide;
    const room = (text.length * LETTER) / 2; // a text at the edge stays inside the picture
    group.append(
      s("line", { class: "tick", x1: place, x2: place, y1: bottom, y2: bottom + 3 }),
      s("text", { x: Math.min(place, width - room), y: bottom + 14, "text-anchor": "middle" }, text),
    );
  }
  for (const { at, text } of yTicks) {
    const place = MARGIN.top + (1 - at) * tall;
    group.append(
      s("line", { class: "tick", x1: left - 3, x2: left, y1: place, y2: place }),
      s("text", { x: left - 6, y: place + 3.5, "text-anchor": "end" }, text),
    );
  }
  group.append(
    s(
      "text",
      { class: "axis-title", x: left + wide / 2, y: height - 6, "text-anchor": "middle" },
      shorten(x.line.feature.name, 44),
    ),
    s(
      "text",
      { class: "axis-title", transform: `translate(12 ${MARGIN.top + tall / 2}) rotate(-90)`, "text-anchor": "middle" },
      shorten(y.line.feature.name, 34),
    ),
  );
  return group;
}

/** Return what must be said of sides whose values have the same room although they are not evenly spaced. */
export function unevenWords(lines: Line[]): string {
  const names = lines.filter(isUneven).map((line) => shorten(line.feature.name, 40));
  if (!names.length) return "";
  return ` Every value of ${names.join(" and of ")} has the same room, however far apart they are.`;
}

function isUneven(line: Line): boolean {
  if (line.feature.kind !== "number" || !sideOf(line).isEven) return false;
  const known = line.values.filter((value) => value !== null).map(Number);
  const steps = known.slice(1).map((value, n) => value - known[n]);
  return Math.max(...steps) > 1.01 * Math.min(...steps);
}

function listen(svg: SVGSVGElement, cursor: SVGRectElement, frame: Frame, options: MapOptions): void {
  const [nx, ny] = [frame.x.spans.length, frame.y.spans.length];
  const at = { x: Math.floor(nx / 2), y: Math.floor(ny / 2) };
  const show = (): void => {
    for (const [key, value] of Object.entries(boxOf(frame, at.x, at.y))) cursor.setAttribute(key, String(value));
    cursor.setAttribute("visibility", "visible");
    options.read(at.x, at.y);
  };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const px = ((event.clientX - box.left) / box.width) * options.width;
    const py = ((event.clientY - box.top) / box.height) * options.height;
    const x = valueAtShare(frame.x, (px - frame.left) / frame.wide);
    const y = valueAtShare(frame.y, 1 - (py - MARGIN.top) / frame.tall);
    if (x < 0 || y < 0) return;
    Object.assign(at, { x, y });
    show();
  });
  const leave = (): void => {
    cursor.setAttribute("visibility", "hidden");
    options.leave();
  };
  svg.addEventListener("pointerleave", leave);
  svg.addEventListener("blur", leave);
  svg.addEventListener("keydown", (event) => {
    const moves: Record<string, [number, number]> = {
      ArrowRight: [1, 0],
      ArrowLeft: [-1, 0],
      ArrowUp: [0, 1],
      ArrowDown: [0, -1],
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    at.x = Math.min(Math.max(at.x + move[0], 0), nx - 1);
    at.y = Math.min(Math.max(at.y + move[1], 0), ny - 1);
    show();
  });
}
