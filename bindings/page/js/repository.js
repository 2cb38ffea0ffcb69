// The tables of a proved repository, as `bindings/page/src/repository.rs` writes them.

const NODE = 6;
const RECORD = 4;

/** The parent of the root. */
const NO_PARENT = 0xffffffff;

/** Nodes in the order of the walk, and records in the order of their paths. */
export class Tables {
  constructor({ nodes, records, paths }) {
    Object.assign(this, { nodes, records, paths, decoder: new TextDecoder() });
    this.nodeCount = nodes.length / NODE;
    this.recordCount = records.length / RECORD;
    this.sizes = this.subtreeSizes();
  }

  /** Nodes in each subtree, the node itself among them. */
  subtreeSizes() {
    const sizes = new Uint32Array(this.nodeCount).fill(1);
    for (let node = this.nodeCount - 1; node > 0; node -= 1) sizes[this.nodes[node * NODE]] += sizes[node];
    return sizes;
  }

  parent(node) {
    const parent = this.nodes[node * NODE];
    return parent === NO_PARENT ? -1 : parent;
  }

  layer = (node) => this.nodes[node * NODE + 1];
  nodeAt = (node) => this.nodes[node * NODE + 2];
  nodeLength = (node) => this.nodes[node * NODE + 3];
  first = (node) => this.nodes[node * NODE + 4];
  end = (node) => this.nodes[node * NODE + 5];
  nodeOf = (record) => this.records[record * RECORD + 1];
  recordAt = (record) => this.records[record * RECORD + 2];
  recordLength = (record) => this.records[record * RECORD + 3];

  /** The path of a record. */
  path(record) {
    const start = record === 0 ? 0 : this.records[(record - 1) * RECORD];
    return this.decoder.decode(this.paths.subarray(start, this.records[record * RECORD]));
  }

  /** The collection of a record. */
  collection(record) {
    const path = this.path(record);
    const slash = path.indexOf("/");
    return slash < 0 ? path : path.slice(0, slash);
  }

  /** Calls `visit(child)` for each child. */
  eachChild(node, visit) {
    const end = node + this.sizes[node];
    for (let child = node + 1; child < end; child += this.sizes[child]) visit(child);
  }

  /** The nodes from the root to the one that holds a record. */
  proofPath(record) {
    const nodes = [];
    for (let node = this.nodeOf(record); node >= 0; node = this.parent(node)) nodes.unshift(node);
    return nodes;
  }

  /** The collections `{name, first, end}` in order: their records follow each other. */
  collections() {
    const found = [];
    for (let record = 0; record < this.recordCount; ) {
      const name = this.collection(record);
      const end = this.endOfCollection(record, name);
      found.push({ name, first: record, end });
      record = end;
    }
    return found;
  }

  /** The end of the records with the collection of the first, by halving. */
  endOfCollection(first, name) {
    let low = first + 1;
    let high = this.recordCount;
    let step = 1;
    while (low + step < high && this.collection(low + step) === name) {
      low += step;
      step *= 2;
    }
    high = Math.min(high, low + step);
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.collection(middle) === name) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
