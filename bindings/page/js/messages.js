// What is shown of messages of the firehose, and of the states of their accounts.
import { bounded, byteSize, counted, el, numeral } from "./dom.js";
import { chainPicture } from "./chain.js";
import { bytesOf } from "./records.js";
import { refusalCard } from "./refusal.js";
import { section, verdictCard } from "./verdict.js";
import { capitalized, contentOf, identityStations, listAndDetail, lookUpAction, NOT_REACHED, sentence, signer } from "./views.js";

/** How a message continues the chain of its account. */
const CHAINS = {
  intact: ["proved", "continues the last"],
  "first-seen": ["claimed", "the first one here"],
  broken: ["refused", "one before is missing"],
  "still-desynchronized": ["refused", "after a gap"],
  unproved: ["claimed", "not proved"],
};

/** One message, or several in their order. */
export function messagesView({ result, states, forgetStates, identityOf, keyOf, ...shared }) {
  const { messages } = result;
  const given = (message) => {
    const did = accountIn(message);
    return { result: message, did, identity: identityOf(did), key: keyOf(did), ...shared };
  };
  const { cards, said } = messages.length === 1 ? messageView(given(messages[0])) : chainView({ messages, given, ...shared });
  if (result.states.accounts > 0) cards.push(statesSection({ accounts: result.states.accounts, states, forgetStates }));
  return { cards, said };
}

/** Saved states that were opened. */
export function statesView({ result, states, forgetStates }) {
  const text = "The next message of each of these accounts must continue its chain. Saved states are your own notes: nobody signed them.";
  const cards = [verdictCard({ state: "partial", title: "States read", text, facts: [[numeral(result.accounts), result.accounts === 1 ? "account" : "accounts"]] }), statesSection({ accounts: result.accounts, states, forgetStates })];
  return { cards, said: `States of ${counted(result.accounts, "account")} read` };
}

function accountIn({ fields }) {
  const field = fields.find(([name]) => name === "repo" || name === "did");
  return field?.[1];
}

/** The accounts whose next message is judged as the next of a chain. */
function statesSection({ accounts, states, forgetStates }) {
  const text = `The revision and the tree of ${counted(accounts, "account")} are known from verified messages. The next message is judged from there.`;
  const words = el("p", { class: "small" }, text);
  const save = () => {
    const address = URL.createObjectURL(new Blob([states], { type: "application/json" }));
    el("a", { href: address, download: "wireproof-states.json" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  };
  const buttons = el("p", {}, el("button", { type: "button", click: save }, "Save states"), " ", el("button", { type: "button", click: () => {
    forgetStates();
    words.textContent = "Forgotten: the next message of an account is taken as its first.";
    buttons.remove();
  } }, "Forget them"));
  return section("Accounts that are followed", words, buttons);
}

/** What a verdict of a message means. */
function readVerdict({ verdict, code, chain, invalid }) {
  const lacksKey = code === "signature/no-key";
  const isSigned = verdict === "verified";
  const isBroken = chain === "broken" || chain === "still-desynchronized";
  return { lacksKey, isSigned, isBroken, isIgnored: verdict === "ignored", isRefused: verdict === "refused" && !lacksKey, isClean: isSigned && !isBroken && !invalid };
}

/** One message. */
function messageView({ result, bytes, did, identity, key, took, ask, lookUpKey }) {
  const { lacksKey, isSigned, isBroken, isIgnored, isRefused, isClean } = readVerdict(result);
  const [state, title, text] = isRefused
    ? ["refused", "Refused", sentence(result.refusal.rule)]
    : isIgnored
      ? ["partial", "Left out", sentence(result.refusal.rule)]
      : isBroken
        ? ["partial", "Verified, after a gap", `${capitalized(signer(did, identity))} signed this change. A change before it is missing here: ${result.refusal?.rule ?? "the account has had a gap before"}.`]
        : isSigned
          ? [isClean ? "proved" : "partial", "Verified", `${capitalized(signer(did, identity))} signed this change, and the operations are the whole change.`]
          : lacksKey
            ? ["partial", "Well formed; author not proved", `Every block has its hash. The key of ${did} is not known here, so that neither signature nor operations are proved.`]
            : ["partial", "Well formed", "Messages of this type have no signature: take it as a claim of the host."];
  const facts = [[byteSize(bytes.length), "read"], [numeral(result.blocks.length), "blocks"], [`${numeral(Math.round(took))} ms`, "to verify here"]];
  const cards = [verdictCard({ state, title, text, code: isRefused ? result.code : undefined, facts, action: lacksKey ? lookUpAction(did, lookUpKey) : undefined }), section("Chain of proof", chainPicture(stationsOf({ result, did, identity, key })))];
  if (isRefused) cards.push(refusalCard(result.refusal, bytes));
  cards.push(...partsOf(result, bytes, ask));
  return { cards, said: `${title}: ${result.kind || "frame"}${isRefused ? `, ${result.code}` : ""}` };
}

function stationsOf({ result, did, identity, key }) {
  const { lacksKey, isSigned, isRefused } = readVerdict(result);
  const isOfSignature = isRefused && /^(signature|commit)\//.test(result.code);
  const rev = result.fields.find(([name]) => name === "rev")?.[1];
  const stations = did ? identityStations({ did, identity, key }) : [];
  stations.push({ head: "Message", sub: result.kind ? `#${bounded(result.kind, 40)}` : "unreadable", state: result.kind ? "proved" : "refused", word: result.kind ? "well formed" : result.code });
  if (["commit", "sync"].includes(result.kind)) stations.push({ head: "Signature", sub: rev ? `rev ${rev}` : undefined, state: isSigned ? "proved" : isOfSignature ? "refused" : NOT_REACHED, word: lacksKey ? "not checked" : undefined });
  if (result.kind === "commit") stations.push({ head: "Operations", sub: counted(result.ops.length, "operation"), state: isSigned ? "proved" : isRefused && !isOfSignature ? "refused" : NOT_REACHED, word: isSigned ? "match the signed tree" : undefined });
  if (CHAINS[result.chain]) stations.push({ head: "Chain", state: CHAINS[result.chain][0], word: CHAINS[result.chain][1] });
  return stations;
}

/** The invalid record, the fields and the operations of a message. */
function partsOf(result, bytes, ask) {
  const cards = [];
  if (result.invalid) cards.push(refusalCard(result.invalid, bytes, "Signed but invalid: a record of this change"));
  if (result.fields.length > 0) cards.push(section("Message", fieldsOf(result)));
  if (result.ops.length > 0) cards.push(section("Operations", operations(result, bytes, ask)));
  return cards;
}

function fieldsOf({ fields }) {
  return el("table", { class: "plain" }, ...fields.map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", { class: "mono" }, bounded(value, 200)))));
}

function operations(result, bytes, ask) {
  const fillRow = (row, index) => row.append(el("span", { class: "size" }, result.ops[index].action), el("span", { class: "name" }, bounded(result.ops[index].path, 200)));
  const onChoose = async (index) => {
    const op = result.ops[index];
    const head = [el("h3", {}, bounded(op.path, 300)), el("p", { class: "small soft" }, `${op.action} · `, el("span", { class: "mono" }, bounded(op.cid ?? "no record", 100)))];
    return op.record ? [...head, await contentOf(bytes, ...op.record, ask), bytesOf(bytes, ...op.record)] : head;
  };
  return listAndDetail({ label: "Operations", count: result.ops.length, fillRow, onChoose, hint: "Choose an operation to see its record." }).element;
}

/** Several messages in their order. */
function chainView({ messages, given, bytes, took, ask, lookUpKey }) {
  const verdicts = messages.map(readVerdict);
  const count = (name) => verdicts.filter((verdict) => verdict[name]).length;
  const [signed, refused, gaps, ignored, lacking] = ["isSigned", "isRefused", "isBroken", "isIgnored", "lacksKey"].map(count);
  const bad = verdicts.findIndex(({ isRefused }) => isRefused);
  const accounts = new Set(messages.map(accountIn).filter(Boolean));
  const rest = [[gaps, "after a gap"], [ignored, "left out"], [lacking, "without a key"], [messages.length - signed - refused - ignored - lacking, "without a signature"]].filter(([number]) => number > 0);
  const words = rest.map(([number, what]) => `${numeral(number)} ${what}`).join(", ");
  const isWhole = signed === messages.length && gaps === 0;
  const text = isWhole ? "Every message is signed, its operations are the whole change, and it continues the one before it of its account." : refused > 0 ? `The first refused one is message ${numeral(bad + 1)}: ${sentence(messages[bad].refusal.rule)}` : `Of the verified messages, each is a whole signed change. ${capitalized(words)}.`;
  const title = refused > 0 ? `${numeral(refused)} of ${counted(messages.length, "message")} refused` : isWhole ? "Verified" : `${numeral(signed)} of ${counted(messages.length, "message")} verified`;
  const facts = [[numeral(messages.length), "messages"], [numeral(accounts.size), accounts.size === 1 ? "account" : "accounts"], [byteSize(bytes.length), "read"], [`${numeral(Math.round(took))} ms`, "to verify here"]];
  const unknown = messages.find((_, index) => verdicts[index].lacksKey);
  const action = unknown && accounts.size === 1 ? lookUpAction(accountIn(unknown), lookUpKey) : undefined;
  const station = (head, wrong, what, good) => ({ head, sub: wrong > 0 ? `${numeral(wrong)} ${what}` : undefined, state: wrong > 0 ? "refused" : signed > 0 ? "proved" : NOT_REACHED, word: wrong > 0 ? what : signed > 0 ? good : undefined });
  const of = (isSign) => messages.filter((message, index) => verdicts[index].isRefused && /^(signature|commit)\//.test(message.code) === isSign).length;
  const stations = [station("Signatures", of(true), "refused", "valid"), station("Operations", of(false), "refused", "match the signed trees"), station("Chains", gaps, "after a gap", "no gap")];
  const cards = [verdictCard({ state: refused > 0 ? "refused" : isWhole ? "proved" : "partial", title, text, code: refused > 0 ? messages[bad].code : undefined, facts, action }), section("Chain of proof", chainPicture(stations))];
  if (refused > 0) cards.push(refusalCard(messages[bad].refusal, bytes, `Why message ${numeral(bad + 1)} is refused`));
  cards.push(section("Messages", messageList({ messages, verdicts, given, bytes, ask })));
  return { cards, said: title };
}

function messageList({ messages, verdicts, given, bytes, ask }) {
  const fillRow = (row, index) => {
    const message = messages[index];
    const { isClean, isRefused } = verdicts[index];
    const mark = isClean ? el("span", { class: "good" }, "✓") : isRefused ? el("span", { class: "bad" }, "✗") : el("span", { class: "soft" }, "◐");
    const seq = message.fields.find(([name]) => name === "seq")?.[1];
    row.append(mark, el("span", { class: "name" }, bounded(`${seq ? `${seq} ` : ""}${accountIn(message) ?? message.kind}`, 120)), el("span", { class: "size" }, message.code));
  };
  const onChoose = async (index) => {
    const message = messages[index];
    const parts = [chainPicture(stationsOf(given(message)))];
    if (message.refusal) parts.push(el("p", {}, sentence(message.refusal.rule)));
    parts.push(fieldsOf(message));
    if (message.ops.length > 0) parts.push(operations(message, bytes, ask));
    return parts;
  };
  return listAndDetail({ label: "Messages", count: messages.length, fillRow, onChoose, hint: "Choose a message to see it." }).element;
}
