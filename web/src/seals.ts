/** The emblems of seals: a rosette with a drawing of what is promised. */

import { s } from "./dom.ts";

export type SealKind =
  | "increasing"
  | "decreasing"
  | "convex"
  | "concave"
  | "isolated"
  | "unchanged"
  | "max effect"
  | "ordered";

const [SIZE, RADIUS, WAVE, PETALS] = [48, 21.5, 1.2, 18];

/** What is drawn in the middle: lines from 16 to 32, in both directions. */
const DRAWN: Record<SealKind, string> = {
  increasing: "M17 29 L22 23 L25 26 L31 18.5 M26 18 L31.4 18 L31.4 23.4",
  decreasing: "M17 19 L22 25 L25 22 L31 29.5 M26 30 L31.4 30 L31.4 24.6",
  convex: "M16.5 17.5 C19 33 29 33 31.5 17.5",
  concave: "M16.5 30.5 C19 15 29 15 31.5 30.5",
  isolated: "M19 24 m-2.6 0 a2.6 2.6 0 1 0 5.2 0 a2.6 2.6 0 1 0 -5.2 0 M24.5 24 L28 24 M30.5 17.5 L30.5 30.5",
  unchanged: "M24 16.5 L30.5 19 L30.5 24.2 C30.5 28 27.6 30.8 24 32 C20.4 30.8 17.5 28 17.5 24.2 L17.5 19 Z",
  "max effect":
    "M16.5 18 L16.5 30 M31.5 18 L31.5 30 M19.5 24 L28.5 24 M22 21.3 L19.3 24 L22 26.7 M26 21.3 L28.7 24 L26 26.7",
  ordered:
    "M16.5 30.5 C22 30.5 26 28.5 31.5 25.5 M16.5 26 C22 25.5 26 23 31.5 20.5 M16.5 21.5 C22 20.5 26 18 31.5 15.5",
};

function rosette(): string {
  const n = PETALS * 8;
  const points = Array.from({ length: n }, (_, i) => {
    const angle = (2 * Math.PI * i) / n;
    const radius = RADIUS + WAVE * Math.cos(PETALS * angle);
    return `${(SIZE / 2 + radius * Math.cos(angle)).toFixed(2)} ${(SIZE / 2 + radius * Math.sin(angle)).toFixed(2)}`;
  });
  return `M${points.join("L")}Z`;
}

/** Return the emblem of a seal. */
export function emblem(kind: SealKind): SVGElement {
  return s(
    "svg",
    { class: "emblem", viewBox: `0 0 ${SIZE} ${SIZE}`, width: SIZE, height: SIZE, "aria-hidden": "true" },
    s("path", { class: "emblem-edge", d: rosette() }),
    s("circle", { class: "emblem-ring", cx: SIZE / 2, cy: SIZE / 2, r: 17 }),
    s("path", { class: "emblem-sign", d: DRAWN[kind] }),
  );
}
