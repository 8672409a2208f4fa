// Keeps a page up to date, and sends its forms, without loading the page again. Every page also works
// without this script.
"use strict";

const PAUSE_MS = 250;
const PAUSE_SHARE = 3; // times the duration of the last refresh: a slow page is refreshed less often
const AGAIN_MS = 2000;
const AGES_MS = 20000;
const TROUBLE_MS = 8000;
const byId = (id) => document.getElementById(id);
const body = document.body;
const main = byId("main");
const drawer = byId("drawer");
const live = byId("live");
let source = null;
let lastId = body.dataset.after || "";
let timer = 0;
let isAsking = false;
let isStale = false;
let isHeld = false; // a section was not refreshed, because the person is writing in it
let tookMs = 0;
let dragged = null;

// -- messages

function say(text, kind = "") {
  if (live.textContent === text) return;
  live.textContent = text;
  live.className = kind;
}

function complain(text) {
  const box = byId("trouble");
  box.textContent = text;
  box.hidden = false;
  clearTimeout(complain.timer);
  complain.timer = setTimeout(() => { box.hidden = true; }, TROUBLE_MS);
}

function sayAge(at) {
  const age = (Date.now() - at.getTime()) / 1000;
  const passed = Math.abs(age);
  if (passed < 45) return age >= 0 ? "just now" : "in a moment";
  const [size, unit] = [[86400, "day"], [3600, "h"], [60, "min"]].find(([one]) => passed >= one - 15);
  const n = Math.max(1, Math.round(passed / size));
  const words = `${n} ${unit}${unit === "day" && n > 1 ? "s" : ""}`;
  return age >= 0 ? `${words} ago` : `in ${words}`;
}

// show each time as an age, with the date in the browser's time zone as a tooltip
function tellTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    const words = sayAge(at);
    if (time.textContent !== words) time.textContent = words;
    time.title = at.toLocaleString();
  }
}

// -- refreshing: after an event the page is fetched again, and its changed sections are replaced

async function ask(address) {
  const answer = await fetch(address, { headers: { accept: "text/html" }, cache: "no-store" });
  if (!answer.ok) throw new Error(String(answer.status));
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

function renew(root, fresh) {
  for (const old of root.querySelectorAll("[data-live]")) {
    const found = fresh.querySelector(`[data-live="${old.dataset.live}"]`);
    if (!found) continue;
    tellTimes(found);
    if (isBusy(old)) { isHeld = true; continue; }
    keepOpen(old, found);
    if (old.isEqualNode(found)) continue;
    const scrolled = [...old.querySelectorAll(".scroll")].map((one) => [one.scrollLeft, one.scrollTop]);
    const focus = whereIs(old, document.activeElement);
    old.replaceChildren(...found.childNodes);
    old.querySelectorAll(".scroll").forEach((one, n) => {
      if (scrolled[n]) [one.scrollLeft, one.scrollTop] = scrolled[n];
    });
    if (focus) refocus(old, focus);
  }
}

document.addEventListener("focusout", () => { if (isHeld) plan(); });

// whether the person writes or drags something in the section, so that it must not be replaced
function isBusy(section) {
  if (dragged && section.contains(dragged)) return true;
  return [...section.querySelectorAll("textarea, input:not([type=hidden])")].some((one) =>
    one === document.activeElement || (one.type === "checkbox" ? one.checked !== one.defaultChecked : one.value !== one.defaultValue));
}

function keepOpen(old, found) {
  for (const one of old.querySelectorAll("details[data-key]")) {
    const other = found.querySelector(`details[data-key="${CSS.escape(one.dataset.key)}"]`);
    if (other) other.open = one.open;
  }
}

function whereIs(section, element) {
  if (!element || !section.contains(element)) return null;
  const key = element.closest("[data-key]")?.dataset.key || "";
  return { key, href: element.getAttribute("href"), text: element.textContent };
}

function refocus(section, { key, href, text }) {
  const within = (key && section.querySelector(`[data-key="${CSS.escape(key)}"]`)) || section;
  const found = [...within.querySelectorAll("a, button, summary")].find((one) =>
    href ? one.getAttribute("href") === href : one.textContent === text);
  (found || within.querySelector("a, button, summary"))?.focus({ preventScroll: true });
}

async function refresh() {
  timer = 0;
  if (isAsking) { isStale = true; return; }
  isAsking = true;
  isStale = isHeld = false;
  const before = summary();
  const begun = performance.now();
  try {
    const fresh = await ask(location.href);
    renew(document, fresh);
    if (!drawer.hidden) renew(drawer, await ask(drawer.dataset.address));
    if (source) say("live", "on");
    const now = summary();
    if (now !== before) byId("said").textContent = now;
  } catch {
    say("the server does not answer", "off");
  }
  tookMs = performance.now() - begun;
  isAsking = false;
  if (isStale) plan(4 * PAUSE_MS);
}

// the state in words, which a screen reader speaks after a change
function summary() {
  const state = document.querySelector(".head .state .chip");
  const columns = [...document.querySelectorAll(".column")].map((one) => one.getAttribute("aria-label"));
  return [state?.textContent.trim(), ...columns].filter(Boolean).join(", ");
}

function plan(pause = PAUSE_MS) {
  if (!timer) timer = setTimeout(refresh, Math.max(pause, PAUSE_SHARE * tookMs));
}

function listen() {
  if (source || !body.dataset.events || document.hidden) return;
  const address = new URL(body.dataset.events, location.href);
  if (lastId) address.searchParams.set("after", lastId);
  source = new EventSource(address);
  source.onopen = () => { if (live.className === "off") plan(); say("live", "on"); };
  source.onmessage = (event) => { lastId = event.lastEventId; plan(); };
  source.onerror = () => {
    say("connecting again…", "off");
    if (source.readyState === EventSource.CLOSED) { leave(); setTimeout(listen, AGAIN_MS); }
  };
}

function leave() {
  if (source) source.close();
  source = null;
}

// a hidden page does not listen; when it is shown again, it continues after its last event
document.addEventListener("visibilitychange", () => { if (document.hidden) leave(); else listen(); });
window.addEventListener("pagehide", leave);
window.addEventListener("pageshow", (event) => { if (event.persisted) { listen(); plan(); } });
setInterval(() => { if (!document.hidden) tellTimes(document); }, AGES_MS);

// -- the drawer of a task

async function openDrawer(address) {
  try {
    const page = await ask(address);
    const close = document.createElement("button");
    close.textContent = "Close";
    close.className = "close";
    close.addEventListener("click", shut);
    if (drawer.hidden) drawer.dataset.from = new URL(address, location.href).pathname;
    drawer.replaceChildren(close, ...page.getElementById("main").childNodes);
    drawer.dataset.address = address;
    tellTimes(drawer);
    drawer.hidden = false;
    drawer.scrollTop = 0;
    close.focus();
  } catch {
    location.href = address;
  }
}

function shut() {
  drawer.hidden = true;
  drawer.replaceChildren();
  main.querySelector(`a[data-drawer][href="${CSS.escape(drawer.dataset.from || "")}"]`)?.focus();
}

document.addEventListener("click", (event) => {
  if (event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const link = event.target.closest("a[data-drawer]");
  if (link) {
    event.preventDefault();
    openDrawer(link.getAttribute("href"));
  } else if (!drawer.hidden && main.contains(event.target) && !event.target.closest("a, button, input, textarea, summary, label")) {
    shut();
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !drawer.hidden) shut();
  const tab = event.target.closest?.(".tabs a");
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (tab && step) {
    const all = [...tab.parentElement.querySelectorAll("a")];
    all[(all.indexOf(tab) + step + all.length) % all.length].focus();
    event.preventDefault();
  }
});

// -- steering

async function send(address, fields) {
  const answer = await fetch(address, { method: "POST", body: new URLSearchParams(fields), headers: { accept: "text/html" } });
  if (answer.ok) return true;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  complain(page.querySelector("main")?.textContent.trim().replace(/\s+/g, " ") || "the server refused it");
  return false;
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (!form.matches("form[data-quiet]")) return;
  event.preventDefault();
  const button = form.querySelector("button");
  const data = new FormData(form);
  button.disabled = true;
  try {
    if (await send(form.action, data)) {
      form.reset();
      form.closest("details.menu")?.removeAttribute("open");
      if (form.contains(document.activeElement) && document.activeElement.matches("input, textarea") && !form.matches(".add")) document.activeElement.blur();
      await refresh();
      if (form.matches(".add")) form.querySelector("input[name=name]").focus();
    }
  } catch {
    complain("The server does not answer; perhaps nothing was changed.");
  }
  button.disabled = false;
});

// dragging a card: it is dropped before another card, or below the last one at the end of the list
document.addEventListener("dragstart", (event) => {
  dragged = event.target.closest?.(".card[draggable=true]") || null;
  if (!dragged) return;
  dragged.classList.add("moving");
  event.dataTransfer.effectAllowed = "move";
  event.dataTransfer.setData("text/plain", dragged.dataset.key);
});

function targetOf(event) {
  const list = dragged && event.target.closest?.(".column")?.querySelector("ol[data-order]");
  if (!list) return null;
  const cards = [...list.children].filter((one) => one !== dragged);
  const next = cards.find((one) => {
    const place = one.getBoundingClientRect();
    return event.clientY < place.top + place.height / 2;
  });
  return { list, next };
}

function unmark() {
  for (const one of document.querySelectorAll(".card.target")) one.classList.remove("target");
}

document.addEventListener("dragover", (event) => {
  const target = targetOf(event);
  if (!target) return;
  event.preventDefault();
  unmark();
  target.next?.classList.add("target");
});

document.addEventListener("drop", async (event) => {
  const target = targetOf(event);
  if (!target) return;
  event.preventDefault();
  const card = dragged;
  const to = target.next ? { before: target.next.dataset.key } : { to: "last" };
  const word = card.querySelector("input[name=word]").value;
  target.list.insertBefore(card, target.next || null);
  finish();
  try {
    await send(`${target.list.dataset.order}${card.dataset.key}/move`, { word, ...to });
  } catch {
    complain("The server does not answer; perhaps nothing was changed.");
  }
  await refresh();
});

function finish() {
  dragged?.classList.remove("moving");
  dragged = null;
  unmark();
}

document.addEventListener("dragend", finish);

tellTimes(document);
listen();
