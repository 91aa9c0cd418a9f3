// Makes the page quicker: results while you type, keys, live progress. Everything works without it.
"use strict";

const search = document.getElementById("search");
const field = document.getElementById("q");

async function fragment(address) {
  const answer = await fetch(address, { headers: { "X-Fragment": "1", Accept: "text/html" }, redirect: "error" });
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// ── search as you type ──────────────────────────────────────────────────────

let latest = 0;
let timer = 0;

function address() {
  const values = new URLSearchParams();
  for (const [name, value] of new FormData(search)) if (value.trim()) values.append(name, value);
  return values;
}

async function update(isTyping) {
  const mine = ++latest;
  const values = address();
  const results = document.getElementById("results");
  results.setAttribute("aria-busy", "true");
  history.replaceState(null, "", values.size ? `?${values}` : location.pathname);
  if (isTyping) values.set("typing", "1");
  try {
    const page = await fragment(`/?${values}`);
    if (mine !== latest) return; // a later answer is here already
    const fresh = page.getElementById("results");
    if (fresh) {
      results.replaceWith(document.adoptNode(fresh));
    } else {
      const shown = document.createElement("p");
      shown.className = "note";
      shown.textContent = page.body.textContent.trim().replace(/\s+/g, " ");
      results.replaceChildren(shown);
    }
  } catch {
    if (mine === latest) search.submit(); // the server says what is wrong, or asks for a login
  }
  document.getElementById("results").setAttribute("aria-busy", "false");
}

if (search) {
  search.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => update(true), 160);
  });
  search.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    update(false);
  });
}

// ── keys ────────────────────────────────────────────────────────────────────

function isWriting(target) {
  return target.closest("input:not([type=checkbox]), textarea, select") !== null;
}

function move(step) {
  const hits = [...document.querySelectorAll("[data-hit]")];
  if (!hits.length) return;
  const at = hits.findIndex((hit) => hit.closest("li")?.contains(document.activeElement));
  const next = at < 0 ? (step > 0 ? 0 : -1) : at + step;
  if (next < 0 && field) field.focus();
  else hits[Math.min(Math.max(next, 0), hits.length - 1)].focus();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const writing = isWriting(event.target);
  const inSearch = event.target === field;
  if (event.key === "Escape" && field && !document.querySelector("dialog[open]")) field.focus();
  else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && (!writing || inSearch)) {
    event.preventDefault();
    move(event.key === "ArrowDown" ? 1 : -1);
  } else if (writing) return;
  else if (event.key === "/") {
    event.preventDefault();
    if (field) {
      field.focus();
      field.select();
    } else location.assign("/");
  } else if (event.key === "?") document.getElementById("help").showModal();
  else if (event.key === "w") {
    const why = event.target.closest("li")?.querySelector(".why");
    if (why) why.open = !why.open;
  }
});

// ── live progress ───────────────────────────────────────────────────────────

// Shows the page as it is after a job, unless something is being written on it.
async function refresh() {
  const main = document.getElementById("main");
  const fields = [...main.querySelectorAll("input, textarea")];
  if (fields.some((one) => one === document.activeElement || one.value !== one.defaultValue)) return;
  main.replaceChildren(...(await fragment(location.href)).body.childNodes);
}

async function poll() {
  const job = document.querySelector("#job[data-poll]");
  if (!job) return;
  try {
    const fresh = (await fragment(job.dataset.poll)).getElementById("job");
    const isDone = fresh && !fresh.dataset.poll;
    if (fresh) job.replaceWith(document.adoptNode(fresh));
    if (isDone) return refresh();
  } catch {
    return;
  }
  setTimeout(poll, 600);
}
setTimeout(poll, 400);

// On a phone the menu is closed until it is wanted.
const menu = document.querySelector(".menu");
if (menu && matchMedia("(max-width: 50rem)").matches) menu.open = false;
