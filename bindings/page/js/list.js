// A list of any number of rows, of which only those in view are elements.
import { el } from "./dom.js";

/** Browsers cannot lay out much taller elements. */
const MAX_HEIGHT = 8_000_000;

let lists = 0;

/** A list box: `fillRow(row, index)` writes a row, `onChoose(index)` gets the chosen one. */
export class VirtualList {
  constructor({ label, fillRow, onChoose, rowHeight = 30, className = "" }) {
    lists += 1;
    Object.assign(this, { fillRow, onChoose, rowHeight, count: 0, chosen: -1, id: `list-${lists}` });
    this.space = el("div", { class: "space", role: "presentation" });
    const role = onChoose ? "listbox" : "group";
    this.element = el("div", { class: `list ${className}`, tabindex: 0, role, "aria-label": label, scroll: () => this.draw(), keydown: (event) => this.press(event), click: (event) => this.click(event) }, this.space);
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  /** Shows so many rows from the top. */
  show(count, chosen = -1) {
    this.count = count;
    this.chosen = chosen;
    const isShort = count < 10;
    this.element.style.height = isShort ? `${Math.max(1, count) * this.rowHeight + 2}px` : "";
    this.space.style.height = `${Math.min(count * this.rowHeight, MAX_HEIGHT)}px`;
    if (chosen >= 0) this.reveal(chosen);
    else this.element.scrollTop = 0;
    this.draw(true);
  }

  /** The index of the first row in view. A list that is too tall moves more than a pixel for a pixel. */
  get top() {
    const full = this.count * this.rowHeight;
    const room = Math.min(full, MAX_HEIGHT) - this.element.clientHeight;
    if (room <= 0) return 0;
    return (this.element.scrollTop / room) * ((full - this.element.clientHeight) / this.rowHeight);
  }

  draw(again = false) {
    const height = this.element.clientHeight;
    const top = this.top;
    const first = Math.max(0, Math.floor(top) - 4);
    const end = Math.min(this.count, Math.ceil(top + height / this.rowHeight) + 4);
    if (!again && first === this.first && end === this.end && !this.isTall) return;
    Object.assign(this, { first, end, isTall: this.count * this.rowHeight > MAX_HEIGHT });
    const shift = this.isTall ? this.element.scrollTop - top * this.rowHeight : 0;
    const rows = [];
    for (let index = first; index < end; index += 1) rows.push(this.row(index, shift));
    this.space.replaceChildren(...rows);
    const active = this.chosen >= first && this.chosen < end;
    if (active) this.element.setAttribute("aria-activedescendant", `${this.id}-${this.chosen}`);
    else this.element.removeAttribute("aria-activedescendant");
  }

  row(index, shift) {
    const row = el("div", { class: "row", id: `${this.id}-${index}`, "data-index": index });
    if (this.onChoose) {
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", String(index === this.chosen));
      row.setAttribute("aria-setsize", String(this.count));
      row.setAttribute("aria-posinset", String(index + 1));
    }
    row.style.top = `${index * this.rowHeight + shift}px`;
    this.fillRow(row, index);
    return row;
  }

  /** Scrolls until a row is in view. */
  reveal(index, isCentered = false) {
    const rows = this.element.clientHeight / this.rowHeight;
    const top = this.top;
    if (!isCentered && index >= top && index + 1 <= top + rows) return;
    const wanted = isCentered || index < top - rows || index > top + 2 * rows ? index - (rows - 1) / 2 : index < top ? index : index + 1 - rows;
    const full = this.count * this.rowHeight - this.element.clientHeight;
    const room = Math.min(this.count * this.rowHeight, MAX_HEIGHT) - this.element.clientHeight;
    this.element.scrollTop = full <= 0 ? 0 : ((wanted * this.rowHeight) / full) * room;
  }

  choose(index) {
    if (!this.onChoose || index < 0 || index >= this.count) return;
    this.chosen = index;
    this.reveal(index);
    this.draw(true);
    this.onChoose(index);
  }

  click(event) {
    const row = event.target.closest("[data-index]");
    if (row) this.choose(Number(row.dataset.index));
  }

  press(event) {
    if (!this.onChoose || event.altKey || event.ctrlKey || event.metaKey) return;
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.rowHeight) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -this.count, End: this.count };
    const step = steps[event.key];
    if (step === undefined || this.count === 0) return;
    event.preventDefault();
    this.choose(Math.min(this.count - 1, Math.max(0, (this.chosen < 0 && step > 0 ? -1 : this.chosen) + step)));
  }
}
