// The tree as a picture: a row for each layer, and under each node the records below it. What is narrower than a few pixels
// is drawn as one strip, so that the picture has about as many elements as the screen has room for.
import { bounded, byteSize, counted, el, numeral, shortened, svgEl } from "./dom.js";
import { cidBefore } from "./cid.js";

const ROW = 30;
const GAP = 5;
const LEFT = 58;
const NARROW = 2.5;
const MAX_ROWS = 40;
let trees = 0;

/** The picture of `tables`; `onRecord(record)` gets a record that was chosen in it. */
export class TreePicture {
  constructor(tables, bytes, collections, onRecord) {
    trees += 1;
    Object.assign(this, { tables, bytes, collections, onRecord, id: `tree-${trees}`, lit: new Set(), record: -1, at: 0 });
    this.range = [0, Math.max(1, tables.recordCount)];
    this.layers = tables.nodeCount > 0 ? tables.layer(0) + 1 : 1;
    this.svg = svgEl("svg", { tabindex: 0, role: "tree", "aria-label": "Tree of the repository. Arrow keys move between nodes, Enter zooms in, Escape zooms out.", keydown: (event) => this.press(event), click: (event) => this.click(event) });
    this.where = el("span", { class: "where", role: "status" });
    const button = (name, label, act) => el("button", { type: "button", "aria-label": label, click: act }, name);
    const bar = el("div", { class: "tree-bar" }, button("+", "Zoom in", () => this.zoomBy(0.5)), button("−", "Zoom out", () => this.zoomBy(2)), button("‹", "Move left", () => this.move(-0.6)), button("›", "Move right", () => this.move(0.6)), button("Whole tree", "Show the whole tree", () => this.zoomTo(0)), this.where);
    this.box = el("div", { class: "tree-box" }, this.svg);
    this.element = el("div", { class: "tree" }, bar, this.box, this.legend());
    new ResizeObserver(() => this.draw()).observe(this.box);
  }

  legend() {
    const shown = this.collections.slice(0, 8).map(({ name }, index) => el("li", {}, el("span", { class: `swatch h${index}` }), bounded(name, 60)));
    if (this.collections.length > 1) shown.push(el("li", {}, el("span", { class: "swatch hx" }), this.collections.length > 8 ? "several, or others" : "several"));
    return el("ul", { class: "legend", "aria-label": "Colors: collections" }, ...shown);
  }

  /** The color of records `first` to `end`: of their collection, if it is one of the first eight. */
  color(first, end) {
    const index = this.collections.slice(0, 8).findIndex((collection) => first >= collection.first && end <= collection.end);
    return index < 0 ? "" : ` h${index}`;
  }

  /** Lights the proof path of a record. */
  light(record) {
    this.record = record;
    this.lit = new Set(record < 0 ? [] : this.tables.proofPath(record));
    if (record >= 0) {
      this.at = this.tables.nodeOf(record);
      if (record < this.range[0] || record >= this.range[1]) this.zoomTo(0);
    }
    this.draw();
    this.say();
  }

  zoomTo(node) {
    const { first, end } = { first: this.tables.first(node), end: this.tables.end(node) };
    this.at = node;
    this.animate([first, Math.max(end, first + 1)]);
    this.say();
  }

  zoomBy(factor) {
    const [first, end] = this.goal ?? this.range;
    const middle = this.record >= first && this.record < end ? this.record + 0.5 : (first + end) / 2;
    const half = Math.max(2, Math.min(this.tables.recordCount, (end - first) * factor)) / 2;
    this.animate(this.inside([middle - half, middle + half]));
  }

  move(share) {
    const [first, end] = this.goal ?? this.range;
    const by = (end - first) * share;
    this.animate(this.inside([first + by, end + by]));
  }

  inside([first, end]) {
    const most = Math.max(1, this.tables.recordCount);
    const length = Math.min(most, end - first);
    const start = Math.max(0, Math.min(first, most - length));
    return [start, start + length];
  }

  animate(goal) {
    this.goal = goal;
    const from = this.range;
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const start = performance.now();
    const frame = (now) => {
      if (this.goal !== goal) return;
      const time = isStill ? 1 : Math.min(1, Math.max(0, now - start) / 220);
      const eased = 1 - (1 - time) ** 3;
      this.range = [0, 1].map((side) => from[side] + (goal[side] - from[side]) * eased);
      this.draw();
      if (time < 1) requestAnimationFrame(frame);
      else this.goal = undefined;
    };
    requestAnimationFrame(frame);
  }

  /** Says where the keyboard is. */
  say() {
    this.where.textContent = this.tables.nodeCount === 0 ? "" : this.describe(this.at);
  }

  describe(node) {
    const { tables } = this;
    const records = tables.end(node) - tables.first(node);
    return `${node === 0 ? "Root" : "Node"} in layer ${tables.layer(node)}: ${counted(records, "record")} below, ${byteSize(tables.nodeLength(node))}, ${shortened(cidBefore(this.bytes, tables.nodeAt(node)), 20)}`;
  }

  draw() {
    const width = Math.floor(this.box.clientWidth);
    if (width === 0) return;
    const rows = Math.min(this.layers, MAX_ROWS) + 1;
    const height = rows * (ROW + GAP) + 8;
    this.width = width;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("height", height);
    this.svg.classList.toggle("dimmed", this.record >= 0);
    this.parts = [];
    this.strips = [];
    this.drawLayers(rows);
    if (this.tables.nodeCount > 0) this.drawNode(0);
    this.drawRecords(rows);
    this.drawBeam(rows);
    this.svg.replaceChildren(...this.parts);
    const active = this.svg.querySelector(".at");
    if (active) this.svg.setAttribute("aria-activedescendant", active.id);
    else this.svg.removeAttribute("aria-activedescendant");
  }

  drawLayers(rows) {
    for (let row = 0; row < rows - 1; row += 1) this.parts.push(svgEl("text", { class: "layer", x: 0, y: this.y(row) + ROW / 2 + 4 }, `layer ${this.layers - 1 - row}`));
    this.parts.push(svgEl("text", { class: "layer", x: 0, y: this.y(rows - 1) + ROW / 2 + 4 }, "records"));
  }

  y = (row) => 4 + row * (ROW + GAP);
  x = (record) => LEFT + ((record - this.range[0]) / (this.range[1] - this.range[0])) * (this.width - LEFT);

  /** The left and right edge of records in view, or nothing. */
  span(first, end) {
    const left = Math.max(LEFT, this.x(first));
    const right = Math.min(this.width, this.x(end));
    return right > left ? [left, right] : null;
  }

  drawNode(node) {
    const { tables } = this;
    const row = this.layers - 1 - tables.layer(node);
    const span = this.span(tables.first(node), tables.end(node));
    if (span === null || row >= MAX_ROWS) return;
    const [left, right] = span;
    if (right - left < NARROW && !this.lit.has(node) && node !== this.at) {
      this.strip(row, left, right, tables.first(node), tables.end(node));
      return;
    }
    this.strips[row] = undefined;
    this.parts.push(this.nodeElement(node, row, left, Math.max(right, left + NARROW)));
    tables.eachChild(node, (child) => this.drawNode(child));
    this.drawTicks(node, row);
  }

  nodeElement(node, row, left, right) {
    const { tables } = this;
    const [first, end] = [tables.first(node), tables.end(node)];
    const name = `node${this.color(first, end)}${this.lit.has(node) ? " lit" : ""}${node === this.at ? " at" : ""}`;
    const group = svgEl("g", { class: name, id: `${this.id}-${node}`, role: "treeitem", "aria-level": row + 1, "aria-label": this.describe(node), "aria-selected": String(this.lit.has(node)), "data-node": node });
    group.append(svgEl("rect", { x: left, y: this.y(row), width: right - left, height: ROW, rx: Math.min(5, (right - left) / 3) }));
    return group;
  }

  /** A node that is too narrow, and all below it: a part of one strip in its row and in each lower one. */
  strip(row, left, right, first, end) {
    for (let lower = row; lower < Math.min(this.layers, MAX_ROWS); lower += 1) this.extendStrip(lower, left, right, first, end);
  }

  /** Neighbors become one element, up to the next collection. */
  extendStrip(row, left, right, first, end) {
    const color = this.color(first, end);
    const last = this.strips[row];
    if (last && left - last.right < 1 && last.color === color) {
      last.right = Math.max(last.right, right);
      last.rect.setAttribute("width", Math.max(1, last.right - last.left));
      return;
    }
    const rect = svgEl("rect", { class: "strip", x: left, y: this.y(row), width: Math.max(1, right - left), height: ROW, "data-from": first });
    this.strips[row] = { rect, left, right, color };
    this.parts.push(svgEl("g", { class: `node${color}`, "aria-hidden": "true" }, rect));
  }

  /** The entries of a node itself: the records between its children. */
  drawTicks(node, row) {
    const { tables } = this;
    const gaps = [];
    let next = tables.first(node);
    tables.eachChild(node, (child) => {
      if (tables.first(child) > next) gaps.push([next, tables.first(child)]);
      next = Math.max(next, tables.end(child));
    });
    if (tables.end(node) > next) gaps.push([next, tables.end(node)]);
    for (const [from, to] of gaps) {
      const low = Math.max(from, Math.floor(this.range[0]));
      const high = Math.min(to, Math.ceil(this.range[1]), low + this.width);
      let before = -10;
      for (let record = low; record < high; record += 1) {
        const x = this.x(record + 0.5);
        if (x - before < 4 || x < LEFT || x > this.width) continue;
        before = x;
        this.parts.push(svgEl("path", { class: "tick", d: `M${x.toFixed(1)} ${this.y(row) + 8} v${ROW - 16}` }));
      }
    }
  }

  /** The lowest row: the records, or strips of them by collection. */
  drawRecords(rows) {
    const y = this.y(rows - 1);
    const wide = (this.width - LEFT) / (this.range[1] - this.range[0]);
    if (wide < 5) {
      let drawn = 0;
      for (const { first, end } of this.collections) {
        const span = this.span(first, end);
        if (span === null || span[1] - drawn < 0.7) continue;
        drawn = span[1];
        this.parts.push(svgEl("g", { class: `node${this.color(first, end)}`, "aria-hidden": "true" }, svgEl("rect", { x: span[0], y, width: Math.max(1, span[1] - span[0]), height: ROW, rx: 3, "data-from": first, "data-to": end })));
      }
      return;
    }
    for (let record = Math.floor(this.range[0]); record < Math.min(this.tables.recordCount, this.range[1]); record += 1) {
      const span = this.span(record, record + 1);
      if (span === null) continue;
      const isChosen = record === this.record;
      const group = svgEl("g", { class: `node${this.color(record, record + 1)}${isChosen ? " lit" : ""}`, "data-record": record }, svgEl("title", {}, bounded(this.tables.path(record), 300)));
      group.append(svgEl("rect", { x: span[0] + 0.5, y, width: Math.max(1, span[1] - span[0] - 1), height: ROW, rx: 3 }));
      this.parts.push(group);
    }
  }

  /** The line from the root to the chosen record. */
  drawBeam(rows) {
    if (this.record < 0) return;
    const x = this.x(this.record + 0.5);
    if (x < LEFT || x > this.width) return;
    this.parts.push(svgEl("path", { class: "beam", d: `M${x} ${this.y(0)} V${this.y(rows - 1) + ROW / 2}` }), svgEl("circle", { class: "beam-end", cx: x, cy: this.y(rows - 1) + ROW / 2, r: 5 }));
  }

  click(event) {
    const node = event.target.closest("[data-node]");
    const record = event.target.closest("[data-record]");
    if (record) this.onRecord(Number(record.dataset.record));
    else if (node) this.zoomTo(Number(node.dataset.node));
    else if (event.target.dataset.from !== undefined) this.zoomBy(0.25);
  }

  press(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || this.tables.nodeCount === 0) return;
    const moves = { ArrowUp: () => this.tables.parent(this.at), ArrowDown: () => this.child(0), ArrowLeft: () => this.sibling(-1), ArrowRight: () => this.sibling(1), Home: () => 0 };
    if (moves[event.key]) {
      const node = moves[event.key]();
      if (node >= 0) this.step(node);
    } else if (event.key === "Enter" || event.key === " ") {
      this.zoomTo(this.at);
    } else if (event.key === "Escape" || event.key === "Backspace") {
      const parent = this.tables.parent(this.at);
      this.zoomTo(Math.max(0, parent));
    } else {
      return;
    }
    event.preventDefault();
  }

  step(node) {
    this.at = node;
    const [first, end] = [this.tables.first(node), this.tables.end(node)];
    if (first < this.range[0] || end > this.range[1] || (end - first) * 400 < this.range[1] - this.range[0]) this.zoomTo(node);
    else this.draw();
    this.say();
  }

  child(index) {
    const children = [];
    this.tables.eachChild(this.at, (child) => children.length <= index && children.push(child));
    return children[index] ?? -1;
  }

  /** The next node of the same parent, or of the parent's neighbor. */
  sibling(step) {
    const layer = this.tables.layer(this.at);
    for (let node = this.at + step; node > 0 && node < this.tables.nodeCount; node += step) {
      if (this.tables.layer(node) === layer) return node;
    }
    return -1;
  }
}

/** Numbers of nodes, for the heading of the picture. */
export function treeFacts(tables) {
  return `${counted(tables.nodeCount, "node")} in ${counted(tables.nodeCount > 0 ? tables.layer(0) + 1 : 0, "layer")} over ${counted(tables.recordCount, "record")}, ${numeral(tables.nodeCount > 0 ? Math.round((10 * tables.recordCount) / tables.nodeCount) / 10 : 0)} a node`;
}
