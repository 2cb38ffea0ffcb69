// Elements, and texts of bounded length. Data from inputs reaches the page only as the text of nodes.

const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children; a child that is text becomes a text node. */
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same for SVG. */
export function svgEl(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : String(value));
  }
  for (const child of children) if (child !== undefined && child !== null) element.append(child);
  return element;
}

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/** At most `most` characters of a text, without characters that change the direction or the line. */
export function bounded(text, most = 200) {
  const shown = printable(String(text).slice(0, most + 1));
  return shown.length > most ? `${shown.slice(0, most)}…` : shown;
}

/** A long text with its middle left out. */
export function shortened(text, most = 24) {
  const shown = printable(String(text).slice(0, 4096));
  if (shown.length <= most) return shown;
  const end = Math.floor((most - 1) / 3);
  return `${shown.slice(0, most - 1 - end)}…${shown.slice(-end)}`;
}

/** Control characters, and characters that reorder the text around them, as symbols. */
export function printable(text) {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, (character) => {
    const code = character.codePointAt(0);
    return code < 0x20 ? String.fromCodePoint(0x2400 + code) : "\ufffd";
  });
}

const NUMBER = new Intl.NumberFormat("en");

/** A number with separators. */
export const numeral = (value) => NUMBER.format(value);

/** A number of things: "1 record", "2 records". */
export const counted = (value, thing) => `${numeral(value)} ${thing}${value === 1 ? "" : "s"}`;

/** A number of bytes in its unit. */
export function byteSize(bytes) {
  if (bytes < 1000) return counted(bytes, "byte");
  const units = ["kB", "MB", "GB"];
  let value = bytes / 1000;
  let unit = 0;
  for (; value >= 1000 && unit < 2; unit += 1) value /= 1000;
  return `${value < 10 ? value.toFixed(1) : numeral(Math.round(value))} ${units[unit]}`;
}

/** Tells a screen reader. */
export function announce(text) {
  byId("status").textContent = bounded(text, 400);
}

/** Indented JSON from the text of JSON, which is not parsed: numbers keep all their digits. */
export function indentedJson(json, most = 20000) {
  let out = "";
  let depth = 0;
  let inside = false;
  for (let at = 0; at < json.length && out.length < most; at += 1) {
    const character = json[at];
    if (inside) {
      out += character;
      if (character === "\\") out += json[(at += 1)] ?? "";
      else if (character === '"') inside = false;
    } else if (character === '"') {
      inside = true;
      out += character;
    } else if ((character === "{" || character === "[") && json[at + 1] !== (character === "{" ? "}" : "]")) {
      depth += 1;
      out += `${character}\n${"  ".repeat(Math.min(depth, 40))}`;
    } else if (character === "}" || character === "]") {
      const isEmpty = json[at - 1] === (character === "}" ? "{" : "[");
      if (!isEmpty) depth -= 1;
      out += isEmpty ? character : `\n${"  ".repeat(Math.min(depth, 40))}${character}`;
    } else if (character === ",") {
      out += `,\n${"  ".repeat(Math.min(depth, 40))}`;
    } else if (character === ":") {
      out += ": ";
    } else if (character > " ") {
      out += character;
    }
  }
  const lines = out.split("\n").map(printable).join("\n");
  return out.length < most ? lines : `${lines}\n… (${numeral(json.length)} characters of JSON)`;
}
