/** Scales, ticks and colours. */

export interface Scale {
  (value: number): number;
  invert(pixel: number): number;
  domain: [number, number];
}

/** Return the straight map from a domain to a range. */
export function linear(domain: [number, number], range: [number, number]): Scale {
  const span = domain[1] - domain[0] || 1;
  const scale = ((value: number) => range[0] + ((value - domain[0]) / span) * (range[1] - range[0])) as Scale;
  scale.invert = (pixel: number) => domain[0] + ((pixel - range[0]) / (range[1] - range[0])) * span;
  scale.domain = domain;
  return scale;
}

/** Return round numbers inside a domain, about `count` of them. */
export function ticks([low, high]: [number, number], count: number): number[] {
  const span = high - low;
  if (!(span > 0) || !Number.isFinite(span)) return [low];
  const rough = span / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= rough) ?? 10 * power;
  const out: number[] = [];
  // Adding zero turns a negative zero into a plain one.
  for (let n = Math.ceil(low / step - 1e-9); n * step <= high + 1e-9 * step; n++) out.push(n * step + 0);
  return out;
}

/** Return a domain that holds all values and zero, with a little room. */
export function padded(values: Iterable<number>, room = 0.06): [number, number] {
  let low = 0;
  let high = 0;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const pad = (high - low || 1) * room;
  return [low - pad, high + pad];
}

const LIGHT = ["#053061", "#1d62a3", "#5b9bd0", "#aacfe8", "#f7f7f5", "#f6c4a2", "#e58a4f", "#c2520f", "#6b2a00"];
const DARK = ["#9ed0f7", "#5ea4dc", "#2f75b0", "#1d4468", "#24262a", "#63391d", "#b05a1e", "#e88c4a", "#ffc79a"];

function channel(colour: string, at: number): number {
  return Number.parseInt(colour.slice(1 + 2 * at, 3 + 2 * at), 16);
}

/** Return the colour of a number in [-1, 1]: blue below, orange above, the ground in between. */
export function diverging(value: number, isDark: boolean): string {
  const palette = isDark ? DARK : LIGHT;
  const at = ((Math.min(Math.max(value, -1), 1) + 1) / 2) * (palette.length - 1);
  const low = Math.min(Math.floor(at), palette.length - 2);
  const part = at - low;
  const mixed = [0, 1, 2].map((c) =>
    Math.round(channel(palette[low], c) * (1 - part) + channel(palette[low + 1], c) * part),
  );
  return `rgb(${mixed.join(" ")})`;
}

const EMPTY = { light: [214, 210, 202], dark: [66, 70, 77] }; // grey, unlike the ground of a small effect

/** Return a colour, the greyer the fewer rows are near: a share of 0 leaves nothing of it. */
export function faded(colour: string, share: number, isDark: boolean): string {
  const ground = isDark ? EMPTY.dark : EMPTY.light;
  const parts = (colour.match(/\d+/g) ?? []).map(Number);
  return `rgb(${parts.map((part, c) => Math.round(part * share + ground[c] * (1 - share))).join(" ")})`;
}
