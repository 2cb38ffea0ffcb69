// The records of a repository by collection, and the chosen one with its proof.
import { bounded, byteSize, counted, el, indentedJson, numeral, shortened } from "./dom.js";
import { cidBefore } from "./cid.js";
import { hexView } from "./hex.js";
import { VirtualList } from "./list.js";

/** Longest block that is converted to JSON for the page. */
const MAX_SHOWN_BYTES = 1 << 20;

/** The list and the detail; `ask(question, bytes)` converts blocks, `onChoose(record)` lights the proof path. */
export class Records {
  constructor({ tables, collections, bytes, summary, ask, onChoose }) {
    Object.assign(this, { tables, collections, bytes, summary, ask, onChoose, rows: null, base: 0 });
    this.list = new VirtualList({ label: "Records", fillRow: (row, index) => this.fillRow(row, index), onChoose: (index) => this.choose(this.recordAt(index)) });
    this.count = el("p", { class: "count", role: "status" });
    this.detail = el("div", { class: "detail" }, el("p", { class: "empty" }, "Choose a record to see its content and the path that proves it."));
    this.pick = el("select", { id: `${this.list.id}-collection`, change: () => this.filter() }, el("option", { value: "" }, `All collections (${numeral(tables.recordCount)})`), ...collections.slice(0, 2000).map(({ name, first, end }, index) => el("option", { value: index }, `${bounded(name, 80)} (${numeral(end - first)})`)));
    this.words = el("input", { id: `${this.list.id}-words`, type: "search", spellcheck: "false", input: () => this.filter() });
    const field = (label, control) => el("div", { class: "field" }, el("label", { for: control.id }, label), control);
    const picks = el("div", { class: "picks" }, field("Collection", this.pick), field("Path contains", this.words));
    this.element = el("div", { class: "split" }, el("div", {}, picks, this.list.element, this.count), this.detail);
    this.filter();
  }

  recordAt(index) {
    return this.rows ? this.rows[index] : this.base + index;
  }

  /** Shows the records of the chosen collection whose path contains the words. */
  filter() {
    const { name, first, end } = this.collections[this.pick.value] ?? { first: 0, end: this.tables.recordCount };
    const words = this.words.value.trim();
    this.base = first;
    this.isInOne = name !== undefined;
    this.rows = words === "" ? null : [];
    for (let record = first; words !== "" && record < end; record += 1) if (this.tables.path(record).includes(words)) this.rows.push(record);
    const count = this.rows ? this.rows.length : end - first;
    this.list.show(count);
    this.count.textContent = `${counted(count, "record")} shown`;
  }

  fillRow(row, index) {
    const record = this.recordAt(index);
    const path = this.tables.path(record);
    const slash = path.indexOf("/") + 1;
    const shown = this.isInOne ? [bounded(path.slice(slash), 120)] : [el("span", { class: "soft" }, bounded(path.slice(0, slash), 100)), bounded(path.slice(slash), 120)];
    row.append(el("span", { class: "name" }, ...shown), el("span", { class: "size" }, byteSize(this.tables.recordLength(record))));
  }

  /** Shows a record that was chosen elsewhere. */
  reveal(record) {
    this.pick.value = "";
    this.words.value = "";
    this.filter();
    this.list.choose(record);
  }

  async choose(record) {
    this.onChoose(record);
    this.chosen = record;
    const [at, length] = [this.tables.recordAt(record), this.tables.recordLength(record)];
    const block = this.bytes.subarray(at, at + Math.min(length, MAX_SHOWN_BYTES));
    const { result, refusal } = await this.ask({ form: "block" }, block.slice());
    if (this.chosen !== record) return;
    this.detail.replaceChildren(...recordDetail({ path: this.tables.path(record), cid: cidBefore(this.bytes, at), length, json: result, refusal, steps: this.steps(record) }));
    this.detail.append(bytesOf(this.bytes, at, length));
  }

  /** The proof path of a record, from the signed commit. */
  steps(record) {
    const { tables, summary, bytes } = this;
    const nodes = tables.proofPath(record).map((node) => ({ name: `Node in layer ${tables.layer(node)}`, cid: cidBefore(bytes, tables.nodeAt(node)), length: tables.nodeLength(node) }));
    return [commitStep(summary), ...nodes, { name: "Record", cid: cidBefore(bytes, tables.recordAt(record)), length: tables.recordLength(record) }];
  }
}

/** The first step of a proof path. */
export function commitStep(summary) {
  return { name: summary.signed ? "Signed commit" : "Commit, signature not checked", cid: summary.commit, length: summary.commitAt[1], isClaimed: !summary.signed };
}

/** A record: its path, its content, and the blocks that prove it. */
export function recordDetail({ path, cid, length, json, refusal, steps }) {
  const content = json === undefined ? el("p", {}, `No JSON form: ${bounded(refusal?.rule ?? "", 300)}`) : el("pre", { tabindex: 0, "aria-label": "Content of the record" }, indentedJson(json));
  const items = steps.map((step) => el("li", { class: step.isClaimed ? "st-claimed" : "st-proved" }, `${step.name}, ${byteSize(step.length)} `, el("span", { class: "mono" }, shortened(step.cid, 30))));
  return [el("h3", {}, bounded(path, 300)), el("p", { class: "small soft" }, `${byteSize(length)} · `, el("span", { class: "mono" }, bounded(cid, 100))), content, el("h3", {}, "Proof path"), el("ol", { class: "proof" }, ...items)];
}

/** The bytes of a block, shown when they are asked for. */
export function bytesOf(bytes, at, length) {
  const box = el("details", {}, el("summary", {}, `Bytes ${numeral(at)} to ${numeral(at + length - 1)} of the file`));
  box.addEventListener("toggle", () => box.open && box.children.length === 1 && box.append(hexView(bytes, at, length, true)));
  return box;
}
