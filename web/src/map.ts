/** A map of two features: colour says what they add together, dots show where rows lie. */

import { s, shorten } from "./dom.ts";
import { number, valueText } from "./format.ts";
import type { Line } from "./interaction.ts";
import { locateValue } from "./model.ts";
import type { Value } from "./payload.ts";
import { diverging, ticks } from "./scales.ts";

export interface MapOptions {
  width: number;
  height: number;
  isDark: boolean;
  /** The largest size of a value: the end of the colours. */
  most: number;
  /** Rows as values of the two features. */
  rows: [Value, Value][];
  label: string;
  read(x: number, y: number): void;
  leave(): void;
}

const MARGIN = { left: 64, right: 8, top: 8, bottom: 40 };

/** Return where a value lies among those of a line, or null when it is not shown. */
function placeOf(line: Line, value: Value): number | null {
  const [slot, part] = locateValue(line.feature, value);
  const position = slot + part;
  if (slot >= line.feature.nValues || line.feature.kind !== "number") {
    const at = line.position.indexOf(slot);
    return at < 0 ? null : at;
  }
  const known = line.position.filter((one) => one < line.feature.nValues);
  const after = known.findIndex((one) => one >= position);
  if (after < 0 || (after === 0 && known[0] > position)) return null;
  if (after === 0) return 0;
  return after - 1 + (position - known[after - 1]) / (known[after] - known[after - 1]);
}

interface Tick {
  at: number;
  text: string;
}

/** Return about `count` ticks: round numbers along a number, otherwise values that are shown. */
export function ticksOf(line: Line, count: number, letters: (step: number) => number): Tick[] {
  const all = line.position.map((_, at) => at);
  if (line.feature.kind === "number" && all.length > count) {
    const known = line.values.filter((value) => value !== null).map(Number);
    const found = ticks([known[0], known[known.length - 1]], count - 1)
      .filter((value) => !line.feature.integral || Number.isInteger(value))
      .map((value) => ({ at: placeOf(line, value), text: number(value, 4) }))
      .filter((tick): tick is Tick => tick.at !== null);
    const missing = line.values.indexOf(null);
    if (missing >= 0) found.push({ at: missing, text: "missing" });
    if (found.length > 1) return found;
  }
  const step = Math.ceil(all.length / count);
  const shown = all.filter((at) => at % step === Math.floor(step / 2));
  return shown.map((at) => ({ at, text: tickText(line, at, letters(step)) }));
}

function tickText(line: Line, at: number, limit: number): string {
  const value = line.values[at];
  if (value !== null && line.feature.kind === "number") return number(Number(value), 3);
  return shorten(valueText(line.feature, value), limit);
}

/** Return how far a dot is set off within the field of a level, where many would lie on each other. */
function scatter(line: Line, n: number, step: number): number {
  return line.feature.kind === "number" ? 0 : 0.7 * (((n * step) % 1) - 0.5);
}

/** Return the map; `values` has the second line's values innermost. */
export function drawMap(lines: Line[], values: Float64Array, options: MapOptions): SVGSVGElement {
  const { width, height } = options;
  const [nx, ny] = [lines[0].position.length, lines[1].position.length];
  const [wide, tall] = [(width - MARGIN.left - MARGIN.right) / nx, (height - MARGIN.top - MARGIN.bottom) / ny];
  const left = (at: number) => MARGIN.left + at * wide;
  const top = (at: number) => height - MARGIN.bottom - (at + 1) * tall;
  const svg = s("svg", {
    viewBox: `0 0 ${width} ${height}`,
    class: "map",
    role: "img",
    tabindex: 0,
    "aria-label": `${options.label}. Arrow keys read it point by point.`,
  });
  const cells = s("g", { "shape-rendering": "crispEdges" });
  for (let x = 0; x < nx; x++) {
    for (let y = 0; y < ny; y++) {
      const fill = diverging(values[x * ny + y] / (options.most || 1), options.isDark);
      cells.append(s("rect", { x: left(x), y: top(y), width: wide + 0.3, height: tall + 0.3, fill }));
    }
  }
  const dots = s("g", { class: "dots" });
  options.rows.forEach((row, n) => {
    const [x, y] = [placeOf(lines[0], row[0]), placeOf(lines[1], row[1])];
    if (x === null || y === null) return;
    const cx = left(x + 0.5 + scatter(lines[0], n, 0.618));
    dots.append(s("circle", { cx, cy: top(y + scatter(lines[1], n, 0.414)) + tall / 2, r: 1.3 }));
  });
  const cursor = s("rect", { class: "map-cursor", width: wide, height: tall, visibility: "hidden" });
  svg.append(cells, dots, axisLabels(lines, left, top, wide, tall, options), cursor);
  listen(svg, cursor, [nx, ny], { left, top, wide, tall }, options);
  return svg;
}

function axisLabels(
  lines: Line[],
  left: (at: number) => number,
  top: (at: number) => number,
  wide: number,
  tall: number,
  { width, height }: MapOptions,
): SVGGElement {
  const group = s("g", { class: "axes", "aria-hidden": "true" });
  const inner = width - MARGIN.left - MARGIN.right;
  const isText = lines[0].feature.kind === "category";
  const count = Math.max(2, Math.floor(inner / (isText ? 74 : 56)));
  const letters = (step: number) => Math.min(Math.max(Math.floor((wide * step) / 6.4), 6), 22);
  for (const { at, text } of ticksOf(lines[0], count, letters)) {
    group.append(s("text", { x: left(at) + wide / 2, y: height - MARGIN.bottom + 14, "text-anchor": "middle" }, text));
  }
  for (const { at, text } of ticksOf(lines[1], 8, () => 9)) {
    group.append(s("text", { x: MARGIN.left - 6, y: top(at) + tall / 2 + 3.5, "text-anchor": "end" }, text));
  }
  const middle = height - MARGIN.bottom - (height - MARGIN.top - MARGIN.bottom) / 2;
  group.append(
    s(
      "text",
      { class: "axis-title", x: MARGIN.left + inner / 2, y: height - 6, "text-anchor": "middle" },
      shorten(lines[0].feature.name, 44),
    ),
    s(
      "text",
      { class: "axis-title", transform: `translate(12 ${middle}) rotate(-90)`, "text-anchor": "middle" },
      shorten(lines[1].feature.name, 34),
    ),
  );
  return group;
}

interface Grid {
  left(at: number): number;
  top(at: number): number;
  wide: number;
  tall: number;
}

function listen(
  svg: SVGSVGElement,
  cursor: SVGRectElement,
  [nx, ny]: [number, number],
  grid: Grid,
  options: MapOptions,
): void {
  const at = { x: Math.floor(nx / 2), y: Math.floor(ny / 2) };
  const show = (): void => {
    cursor.setAttribute("x", String(grid.left(at.x)));
    cursor.setAttribute("y", String(grid.top(at.y)));
    cursor.setAttribute("visibility", "visible");
    options.read(at.x, at.y);
  };
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const px = ((event.clientX - box.left) / box.width) * options.width;
    const py = ((event.clientY - box.top) / box.height) * options.height;
    const x = Math.floor((px - grid.left(0)) / grid.wide);
    const y = Math.floor((grid.top(-1) - py) / grid.tall);
    if (x < 0 || y < 0 || x >= nx || y >= ny) return;
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
