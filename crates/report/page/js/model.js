// The data of the page, and the rows that show it.

/** The results, as the page holds them. */
export const model = JSON.parse(document.getElementById("data").textContent);

/** The rows of the tables of speeds, each with what is known of it. */
export const lines = [...document.querySelectorAll("tr[data-row]")].map((tr) => ({
  tr,
  row: model.rows[Number(tr.dataset.row)],
}));

/** An element with a text. */
export function element(name, text = "", className = "") {
  const made = document.createElement(name);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

/** Digits in groups of three. */
export function grouped(number, digits = 0) {
  return number.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
