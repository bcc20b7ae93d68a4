/** The rows of a category, a boolean or a flag: per level its band, its mean and its share. */

import { h, shorten } from "./dom.ts";
import { decimalsFor, signed } from "./format.ts";
import { linear } from "./scales.ts";
import { describe, type Shape } from "./shape.ts";

const MOST_LEVELS = 10;

/** Return the rows of a shape's levels. */
export function drawLevels(shape: Shape, range: [number, number], reading: HTMLElement, isOpen = false): HTMLElement {
  const { feature } = shape;
  const points = shape.points.filter(
    ({ role, share }) =>
      (role !== "missing" || share > 0 || feature.hasMissing) && (role !== "unseen" || feature.kind === "category"),
  );
  const kept = new Set([...points].sort((a, b) => b.share - a.share).slice(0, isOpen ? points.length : MOST_LEVELS));
  for (const point of points) if (point.role === "missing") kept.add(point);
  const shown = points.filter((point) => kept.has(point));
  const most = Math.max(...points.map((point) => point.share)) || 1;
  const decimals = decimalsFor(range[1] - range[0]);
  const scale = linear(range, [0, 100]);
  const rest = reading.textContent ?? "";
  const list = h("ul", { class: "levels" });
  for (const point of shown) {
    const bar = h("div", { class: "level-bar", "aria-hidden": "true" });
    bar.append(
      mark("level-zero", scale(0), 0),
      mark("level-band", scale(point.lower), scale(point.upper) - scale(point.lower)),
    );
    if (point.high > point.low) bar.append(mark("level-inner", scale(point.low), scale(point.high) - scale(point.low)));
    if (!Number.isNaN(point.sureLow)) {
      bar.append(mark("level-sure", scale(point.sureLow), scale(point.sureHigh) - scale(point.sureLow)));
    }
    bar.append(mark("level-mean", scale(point.mean), 0));
    const share = h("span", { class: "level-share", "aria-hidden": "true" });
    const fill = h("i");
    fill.style.width = `${(100 * point.share) / most}%`;
    share.append(fill);
    const item = h(
      "li",
      {
        tabindex: 0,
        "aria-label": describe(shape, point, decimals),
        class: point.role === "value" ? "" : "level-special",
      },
      h("span", { class: "level-name", title: point.label }, h("bdi", {}, shorten(point.label, 42))),
      bar,
      h("span", { class: "level-number", "aria-hidden": "true" }, signed(point.mean, decimals)),
      share,
    );
    const tell = (): void => {
      reading.textContent = describe(shape, point, decimals);
    };
    item.addEventListener("pointerenter", tell);
    item.addEventListener("focus", tell);
    item.addEventListener("pointerleave", () => {
      reading.textContent = rest;
    });
    list.append(item);
  }
  const left = points.length - shown.length;
  const box = h("div", {}, list);
  if (left > 0) {
    box.append(
      h(
        "button",
        { class: "quiet", type: "button", onclick: () => box.replaceWith(drawLevels(shape, range, reading, true)) },
        `Show ${left} more`,
      ),
    );
  }
  return box;
}

function mark(className: string, left: number, width: number): HTMLElement {
  const element = h("i", { class: className });
  element.style.left = `${left}%`;
  if (width) element.style.width = `${width}%`;
  return element;
}
