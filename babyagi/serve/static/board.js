// Keeps the page fresh: events say that something changed, and the page is asked for again.
"use strict";

const PAUSE_MS = 250;
const body = document.body;
const live = document.getElementById("live");
const drawer = document.getElementById("drawer");
let source = null;
let lastId = body.dataset.after || "";
let timer = 0;
let isAsking = false;
let isStale = false;

function say(text) {
  if (live) live.textContent = text;
}

async function ask(address) {
  const answer = await fetch(address, { headers: { accept: "text/html" }, cache: "no-store" });
  if (!answer.ok) throw new Error(String(answer.status));
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

function renew(root, fresh) {
  for (const old of root.querySelectorAll("[data-live]")) {
    const found = fresh.querySelector(`[data-live="${old.dataset.live}"]`);
    if (!found || old.isEqualNode(found) || isTypedIn(old)) continue;
    const open = [...old.querySelectorAll("details")].map((one) => one.open);
    const focused = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    old.replaceChildren(...found.childNodes);
    old.querySelectorAll("details").forEach((one, n) => { one.open = Boolean(open[n]); });
    if (focused) old.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
  }
}

function isTypedIn(section) {
  return [...section.querySelectorAll("textarea, input:not([type=hidden])")].some((one) => one.value);
}

async function refresh() {
  timer = 0;
  if (isAsking) { isStale = true; return; }
  isAsking = true;
  try {
    renew(document.getElementById("main"), await ask(location.href));
    if (!drawer.hidden) renew(drawer, await ask(drawer.dataset.address));
    say("live");
  } catch {
    say("the server does not answer");
  }
  isAsking = false;
  if (isStale) { isStale = false; plan(); }
}

function plan() {
  if (!timer) timer = setTimeout(refresh, PAUSE_MS);
}

function listen() {
  if (source || !body.dataset.events || document.hidden) return;
  const address = new URL(body.dataset.events, location.href);
  if (lastId) address.searchParams.set("after", lastId);
  source = new EventSource(address);
  source.onopen = () => say("live");
  source.onmessage = (event) => { lastId = event.lastEventId; plan(); };
  source.onerror = () => {
    say("connecting again");
    if (source.readyState === EventSource.CLOSED) { leave(); setTimeout(listen, 2000); }
  };
}

function leave() {
  if (source) source.close();
  source = null;
}

// a page that nobody looks at asks nothing; it takes up where it was
document.addEventListener("visibilitychange", () => { if (document.hidden) leave(); else listen(); });

document.addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-drawer]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  try {
    const page = await ask(link.href);
    const close = document.createElement("button");
    close.textContent = "Close";
    close.addEventListener("click", () => shut(link));
    drawer.replaceChildren(close, ...page.getElementById("main").childNodes);
    drawer.dataset.address = link.href;
    drawer.hidden = false;
    close.focus();
  } catch {
    location.href = link.href;
  }
});

function shut() {
  const address = drawer.dataset.address || "";
  drawer.hidden = true;
  drawer.replaceChildren();
  for (const link of document.querySelectorAll("a[data-drawer]")) if (link.href === address) link.focus();
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !drawer.hidden) shut();
});

listen();
