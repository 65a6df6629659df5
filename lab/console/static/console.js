// The page: listens to /events, draws what changed, and presses buttons. Text goes in as text only, never as markup.

const $ = (id) => document.getElementById(id);
const token = document.querySelector('meta[name="token"]').content;
const SILENT_MS = 25_000; // the server says something every 10 s
const AGAIN_MS = 2_000;
const NEWS = 3;

const state = { run: null, variants: [], orders: new Map(), total: 0, open: null, beat: "", connected: false };

function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== false) made.setAttribute(key, value);
  made.append(...children.filter((child) => child !== null));
  return made;
}

const many = (n, one, more = `${one}s`) => `${n} ${n === 1 ? one : more}`;

// -- messages -----------------------------------------------------------------------------------------------

function say(text, kind = "") {
  const time = new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
  $("hint")?.remove();
  $("news").prepend(el("li", { class: kind || null }, el("time", {}, time), el("span", {}, text)));
  while ($("news").children.length > NEWS) $("news").lastChild.remove();
}

function banner(text) {
  if ($("banner").textContent !== text) $("banner").textContent = text;
  $("banner").hidden = !text;
}

// -- the connection ---------------------------------------------------------------------------------------------

let source, watchdog;

function connect() {
  source?.close();
  source = new EventSource("/events");
  source.addEventListener("change", (event) => { heard(); apply(JSON.parse(event.data)); });
  source.addEventListener("ping", heard);
  source.addEventListener("trouble", (event) => {
    heard();
    const trouble = JSON.parse(event.data);
    banner(trouble ? `The local AWS does not answer. The page shows the last known state. (${trouble})` : "");
    if (!trouble) say("The local AWS answers again.");
  });
  source.onopen = heard;
  source.onerror = lost;
}

function heard() {
  clearTimeout(watchdog);
  watchdog = setTimeout(lost, SILENT_MS);
  if (state.connected) return;
  state.connected = true;
  document.body.classList.remove("lost");
  banner("");
  link("live", "Live");
}

function lost() {
  clearTimeout(watchdog);
  source.close();
  if (state.connected || $("link").dataset.state === "connecting") {
    document.body.classList.add("lost");
    link("lost", "Disconnected");
    banner("The connection to the server of this page is lost. Is “make console” still running? Trying again every two seconds.");
  }
  state.connected = false;
  watchdog = setTimeout(connect, AGAIN_MS);
}

function link(name, text) {
  $("link").dataset.state = name;
  $("link").textContent = text;
}

// -- changes -----------------------------------------------------------------------------------------------

function apply(change) {
  if (change.whole) {
    if (state.run && state.run !== change.run) return location.reload(); // another run: the token of this page is invalid
    state.run = change.run;
    for (const id of [...state.orders.keys()]) if (!change.orders.some((order) => order.id === id)) forget(id);
  }
  if (change.total !== undefined) state.total = change.total;
  if (change.variants) drawVariants((state.variants = change.variants));
  for (const order of (change.orders ?? []).slice().reverse()) drawOrder(order, change.whole);
  (change.gone ?? []).forEach(forget);
  $("none").hidden = state.orders.size > 0;
  $("scroll").hidden = state.orders.size === 0;
  const older = state.total - state.orders.size;
  $("older").hidden = older <= 0;
  $("older").textContent = `${many(older, "older order")} not shown and not counted.`;
  const open = state.orders.get(state.open);
  if (open && beatOf(open) !== state.beat) tell();
}

function forget(id) {
  $(`row-${id}`)?.remove();
  state.orders.delete(id);
  if (state.open === id) closeStory();
}

// -- variants ------------------------------------------------------------------------------------------------------

const ARMED = { die_after: "armed: kill", answer_lost: "armed: drop answer", stalled: "armed: stall" };

function summary({ counts }) {
  const wrong = [];
  const through = `${counts.finished} of ${many(counts.orders, "order")} final`;
  if (counts.charged_twice) wrong.push(`${many(counts.charged_twice, "customer")} charged more than once`);
  if (counts.lost) wrong.push(`${many(counts.lost, "order")} lost`);
  if (counts.unrecorded) wrong.push(`${counts.unrecorded} charged, not recorded`);
  if (counts.mailed_twice) wrong.push(`${many(counts.mailed_twice, "customer")} emailed more than once`);
  if (wrong.length) return { kind: "bad", sign: "✗", text: wrong[0], details: [...wrong.slice(1), through].join(" · ") };
  if (!counts.orders) return { kind: "", sign: "", text: "Nothing sent yet", details: "" };
  if (counts.finished === counts.orders) return { kind: "good", sign: "✓", text: "Nobody charged twice", details: `${counts.orders === 1 ? "The order is" : `All ${counts.orders} orders are`} final, once each` };
  const parked = counts.parked ? ` · ${counts.parked} in a DLQ` : "";
  return { kind: "", sign: "…", text: "Nobody charged twice", details: `${through}${parked}` };
}

function drawVariants(variants) {
  const box = $("variants");
  box.setAttribute("aria-busy", "false");
  if (box.querySelectorAll(".variant").length !== variants.length) {
    box.replaceChildren(...variants.map((variant) => el("article", { class: "variant", id: `variant-${variant.name}`, "aria-labelledby": `title-${variant.name}` })));
    $("columns").replaceChildren(el("th", { scope: "col" }, "Order"), ...variants.map((variant) => el("th", { scope: "col" }, variant.title)));
  }
  for (const variant of variants) {
    const { kind, sign, text, details } = summary(variant);
    const at = $(`variant-${variant.name}`);
    at.className = `variant ${kind}`;
    at.replaceChildren(
      el("h2", { id: `title-${variant.name}` }, variant.title, " ", el("small", {}, variant.about)),
      el("p", { class: "summary" }, ...(sign ? [el("span", { "aria-hidden": "true" }, sign)] : []), el("span", {}, text)),
      el("p", { class: "details" }, details),
      counts(variant.counts),
      steps(variant),
    );
  }
  const stopped = variants.some((variant) => !variant.provider);
  const button = document.querySelector('[data-do$="-provider"]');
  button.dataset.do = stopped ? "start-provider" : "stop-provider";
  button.querySelector("b").textContent = stopped ? "Start the provider" : "Stop the provider";
  button.querySelector("small").textContent = stopped ? "it is stopped now" : "no card can be charged";
}

function counts(of) {
  const shown = [
    ["orders", of.orders, ""],
    ["charges", of.charges, ""],
    ["charged twice", of.charged_twice, "wrong"],
    ["lost", of.lost, "wrong"],
    ["in a DLQ", of.parked, "wait"],
    ["emailed twice", of.mailed_twice, "wrong"],
  ];
  return el("dl", { class: "counts" }, ...shown.map(([name, n, kind]) => el("div", { class: kind && n ? kind : null }, el("dt", {}, name), el("dd", {}, kind === "wrong" && n ? `✗ ${n}` : `${n}`))));
}

function steps(variant) {
  const drawn = variant.steps.map((step) => {
    const payment = step.queue === "Payments";
    return el(
      "div",
      { class: "step" },
      el("h3", {}, step.queue),
      el("p", { class: step.waiting ? "on" : null }, `${step.waiting} waiting`),
      el("p", { class: step.in_flight ? "on" : null }, `${step.in_flight} in flight`),
      el("p", { class: step.busy ? "on" : null }, `${many(step.busy, "worker")} busy`),
      el("p", { class: step.parked ? "dlq" : null }, `${step.parked} in its DLQ`),
      payment && !variant.provider ? el("span", { class: "tag" }, "provider stopped") : null,
      payment && variant.armed ? el("span", { class: "tag" }, ARMED[variant.armed]) : null,
    );
  });
  return el("div", { class: "steps" }, ...drawn.flatMap((step, n) => (n ? [el("i", { "aria-hidden": "true" }, "→"), step] : [step])));
}

// -- orders -----------------------------------------------------------------------------------------------------

function cellText(cell) {
  const parked = "in a DLQ";
  const wrong = cell.wrong.filter((text) => text !== parked);
  if (wrong.length) return ["bad", `✗ ${cell.wrong.join(", ")}`];
  if (cell.wrong.includes(parked)) return ["wait", `! ${cell.state}, ${parked}`];
  if (cell.final) return ["good", cell.state === "paid" ? "✓ paid, charged once" : `✓ ${cell.state}`];
  return ["going", `… ${cell.state}`];
}

function drawOrder(order, quiet) {
  const before = state.orders.get(order.id);
  state.orders.set(order.id, order);
  let row = $(`row-${order.id}`);
  if (!row) {
    const times = `${order.copies}×`;
    const button = el("button", { type: "button", "aria-expanded": "false", "aria-controls": "story" }, `Order ${order.number}`);
    row = el("tr", { id: `row-${order.id}` }, el("th", { scope: "row" }, button, el("small", {}, `${order.amount} · ${times}`)), ...state.variants.map(() => el("td")));
    row.addEventListener("click", () => openStory(order.id));
    $("rows").prepend(row);
  }
  state.variants.forEach((variant, n) => {
    const cell = order.variants[variant.name];
    const [kind, text] = cellText(cell);
    const at = row.cells[n + 1];
    if (at.textContent !== text) at.textContent = text;
    at.className = kind;
    const fresh = cell.wrong.filter((what) => !before?.variants[variant.name].wrong.includes(what));
    if (!quiet && fresh.length) report(variant, order, cell, fresh);
  });
}

// One message per order and variant: a rising count replaces it.
function report(variant, order, cell, fresh) {
  const grows = /^(charged|emailed) \d+ times$/;
  const key = `${variant.name} ${order.id}`;
  const text = `${variant.title}: order ${order.number} ${cell.wrong.join(", ")}.`;
  const line = [...$("news").children].find((each) => each.dataset.of === key);
  if (line && fresh.every((what) => grows.test(what))) line.lastChild.textContent = text;
  else {
    say(text, cellText(cell)[0] === "bad" ? "bad" : "no");
    $("news").firstChild.dataset.of = key;
  }
}

// -- a timeline -------------------------------------------------------------------------------------------------

const KINDS = { sent: "Sent", delivery: "Delivery", takeover: "Takeover", fault: "Fault", death: "Death", effect: "Effect", record: "Record", end: "Now" };
const beatOf = (order) => Object.values(order.variants).map((cell) => `${cell.beat}${cell.state}${cell.wrong}`).join();

function openStory(id) {
  if (state.open) mark(state.open, false);
  state.open = id;
  mark(id, true);
  $("histories").replaceChildren(el("p", { class: "empty" }, "Loading…"));
  $("pick").hidden = true;
  $("close-story").hidden = false;
  $("h-story").textContent = `Order ${state.orders.get(id).number}, live`;
  tell();
  $("h-story").focus();
  $("story").scrollIntoView({ block: "nearest", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

function closeStory() {
  const button = document.querySelector(`#row-${CSS.escape(state.open ?? "")} button`);
  const inside = $("story").contains(document.activeElement);
  if (state.open) mark(state.open, false);
  state.open = null;
  $("histories").replaceChildren();
  $("pick").hidden = false;
  $("close-story").hidden = true;
  $("h-story").textContent = "Timeline";
  if (inside) (button ?? $("orders")).focus();
}

function mark(id, open) {
  const row = $(`row-${id}`);
  row?.classList.toggle("open", open);
  row?.querySelector("button").setAttribute("aria-expanded", open);
}

async function tell() {
  const id = state.open;
  state.beat = beatOf(state.orders.get(id));
  let answer;
  try {
    const response = await fetch(`/orders/${encodeURIComponent(id)}`);
    answer = await response.json();
  } catch {
    answer = { refused: "The server of this page does not answer." };
  }
  if (state.open !== id) return;
  if (answer.refused) return $("histories").replaceChildren(el("p", { class: "empty" }, answer.refused));
  const times = Object.values(answer.variants).flat().map((moment) => moment.at_ms).filter(Boolean);
  const began = Math.min(...times);
  const seen = new Set([...$("histories").querySelectorAll("li")].map((li) => li.dataset.key));
  $("histories").replaceChildren(...state.variants.map((variant) => el("div", {}, el("h3", {}, variant.title), historyList(answer.variants[variant.name], began, variant.name, seen))));
}

function historyList(moments, began, variant, seen) {
  let charges = 0;
  return el("ol", { class: "moments" }, ...moments.map((moment) => {
    const again = moment.who === "ledger" && moment.what.includes(" charged") && ++charges > 1;
    const key = `${variant} ${moment.at_ms} ${moment.what}`;
    const when = moment.at_ms ? `+${((moment.at_ms - began) / 1000).toFixed(2)} s` : "";
    const kind = again ? `Charge ${charges}` : KINDS[moment.kind];
    return el("li", { class: `${moment.kind}${again ? " again" : ""}${seen.size && !seen.has(key) ? " new" : ""}`, "data-key": key },
      when ? el("time", {}, when) : null, el("b", {}, kind), ` ${moment.who}: ${moment.what}`);
  }));
}

// -- buttons ----------------------------------------------------------------------------------------------------

async function press(button) {
  if (button.getAttribute("aria-busy") === "true") return;
  if (!state.connected) return say("This page is disconnected.", "no");
  button.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(`/do/${button.dataset.do}`, { method: "POST", headers: { "X-Console-Token": token } });
    const result = await answer.json();
    if (result.refused) say(result.refused, "no");
    else say(result.text);
    if (result.report?.length) audited(result.report);
  } catch {
    say("The outcome is unknown: the server of this page did not answer.", "no");
  } finally {
    button.removeAttribute("aria-busy");
  }
}

function audited(report) {
  $("findings").replaceChildren(...report.map((variant) => el("div", {},
    el("h3", {}, variant.title),
    variant.findings.length
      ? el("ul", {}, ...variant.findings.map((each) => el("li", { class: "bad" }, `✗ ${each.what}: ${named(each.orders)}`)))
      : el("p", { class: "good" }, "✓ No findings."),
    ...(variant.parked.length ? [el("p", { class: "waits" }, `○ in a DLQ, not lost: ${named(variant.parked)}`)] : []),
    el("p", { class: "note" }, `Read: ${variant.by}.${variant.unfinished ? ` ${many(variant.unfinished, "order")} not final yet.` : ""}`))));
  $("report").hidden = false;
  $("h-report").focus();
}

function named(ids) {
  const names = ids.slice(0, 8).map((id) => (state.orders.has(id) ? `order ${state.orders.get(id).number}` : id));
  return names.join(", ") + (ids.length > 8 ? ` and ${ids.length - 8} more` : "");
}

document.querySelectorAll("[data-do]").forEach((button) => button.addEventListener("click", () => press(button)));
$("close-story").addEventListener("click", closeStory);
$("close-report").addEventListener("click", () => {
  $("report").hidden = true;
  document.querySelector('[data-do="audit"]').focus();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && state.open) closeStory();
});
connect();
