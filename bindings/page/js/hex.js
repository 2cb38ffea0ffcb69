// Bytes in hexadecimal with a marked place.
import { el, numeral } from "./dom.js";
import { VirtualList } from "./list.js";

/** Bytes before and after the place that can be scrolled to. */
const AROUND = 64 << 10;

/** A view of `bytes` with `length` bytes marked at `offset`; `isCalm` if the mark is no fault. */
export function hexView(bytes, offset, length, isCalm = false) {
  const state = { bytes, offset, length, from: 0, width: 16 };
  const list = new VirtualList({ label: "Bytes of the input", rowHeight: 20, className: isCalm ? "hex calm" : "hex", fillRow: (row, index) => fillBytes(row, state, index) });
  const show = (at) => {
    state.width = list.element.clientWidth < 500 ? 8 : 16;
    state.from = Math.max(0, Math.floor((at - AROUND) / 16) * 16);
    const end = Math.min(bytes.length, at + AROUND);
    list.show(Math.ceil((end - state.from) / state.width));
    list.reveal(Math.floor((at - state.from) / state.width), true);
    list.draw(true);
  };
  const input = el("input", { id: `${list.id}-go`, type: "text", inputmode: "numeric", value: offset });
  const go = (event) => {
    event.preventDefault();
    const at = Number(input.value.trim());
    if (Number.isInteger(at) && at >= 0 && at < bytes.length) show(at);
  };
  const bar = el("form", { class: "hex-bar", submit: go }, el("div", { class: "field" }, el("label", { for: `${list.id}-go` }, `Go to byte (of ${numeral(bytes.length)})`), input), el("button", {}, "Show"));
  const back = el("button", { type: "button", click: () => show(offset) }, "Back to the mark");
  bar.append(back);
  new ResizeObserver(() => {
    const width = list.element.clientWidth < 500 ? 8 : 16;
    if (list.element.clientWidth > 0 && (list.count === 0 || width !== state.width)) show(offset);
  }).observe(list.element);
  return el("div", { class: "hex-view" }, bar, list.element);
}

function fillBytes(row, { bytes, offset, length, from, width }, index) {
  const at = from + index * width;
  const end = Math.min(at + width, bytes.length);
  const marked = [Math.max(at, offset), Math.min(end, offset + length)];
  const isMarked = marked[0] < marked[1];
  if (isMarked) row.classList.add("marked");
  const hex = (low, high) => {
    let text = "";
    for (let byte = low; byte < high; byte += 1) text += `${bytes[byte].toString(16).padStart(2, "0")} `;
    return text;
  };
  const chars = (low, high) => {
    let text = "";
    for (let byte = low; byte < high; byte += 1) text += bytes[byte] > 0x20 && bytes[byte] < 0x7f ? String.fromCharCode(bytes[byte]) : "·";
    return text;
  };
  const parts = (write) => {
    if (!isMarked) return [write(at, end)];
    return [write(at, marked[0]), el("mark", {}, write(marked[0], marked[1]).trimEnd()), write === hex ? " " : "", write(marked[1], end)];
  };
  const padding = "   ".repeat(width - (end - at));
  row.append(el("span", { class: "at" }, at.toString().padStart(String(bytes.length).length)), el("span", { class: "bytes" }, ...parts(hex), padding), el("span", { class: "chars" }, ...parts(chars)));
}
