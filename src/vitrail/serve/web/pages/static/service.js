// Live quotes, the slider of the price, and the progress of a question. Every page works without this file.
"use strict";

document.documentElement.classList.add("js");
const PAUSE_MS = 250;
const FINISHED = new Set(["done", "failed", "refused", "declined"]);

const NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/;
const ENDED = "Your session has ended. Sign in again in another tab; what you typed stays here.";

/** The number that was typed, as the service reads it too; NaN for anything else, such as a decimal comma. */
function parsed(text) {
  return NUMBER.test(text.trim()) ? Number(text) : NaN;
}

/** After signing in again in another tab: the new session's secret for the forms here, if it is still the same person. */
async function renewForms() {
  const answer = await fetch(location.pathname, { credentials: "same-origin" });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const who = (found) => found.querySelector(".me span")?.textContent;
  const secret = page.querySelector("[name=csrf]")?.value;
  if (!secret || who(page) !== who(document)) return false;
  for (const field of document.querySelectorAll("[name=csrf]")) field.value = secret;
  return true;
}

/** Two digits are enough for a price. */
function rounded(value) {
  return Number(value.toPrecision(2));
}

/** A slider on a logarithmic scale beside the field of the price; both show the same. */
function joinSlider(slider, price, changed) {
  const low = Number(slider.dataset.low), high = Number(slider.dataset.high);
  const place = (value) => 1000 * Math.log(Math.min(Math.max(value, low), high) / low) / Math.log(high / low);
  const show = () => {
    const value = parsed(price.value);
    if (value > 0) slider.value = String(place(value));
    slider.setAttribute("aria-valuetext", `epsilon ${price.value}`);
  };
  slider.addEventListener("input", () => {
    price.value = String(Math.min(rounded(low * (high / low) ** (Number(slider.value) / 1000)), high));
    slider.setAttribute("aria-valuetext", `epsilon ${price.value}`);
    changed();
  });
  price.addEventListener("input", show);
  show();
}

/** The quote of a form, asked for again a moment after anything in it changes; an older question is given up. */
function followQuote(form) {
  const box = document.getElementById(form.dataset.quoteBox);
  const price = form.elements.namedItem("epsilon"), buy = form.querySelector("[data-buy]");
  let timer = 0, asking = null, ended = false;

  async function ask() {
    asking?.abort();
    const own = asking = new AbortController();
    box.setAttribute("aria-busy", "true");
    const post = () => fetch(form.dataset.quote, {
      method: "POST", body: new URLSearchParams(new FormData(form)), signal: own.signal, credentials: "same-origin",
    });
    try {
      let answer = await post();
      if (answer.status === 403 && await renewForms()) answer = await post();
      const text = await answer.text();
      if (own.signal.aborted) return;
      const fragment = new DOMParser().parseFromString(text, "text/html").querySelector("[data-fragment]");
      ended = answer.status === 401;
      if (fragment) box.replaceChildren(fragment);
      else if (ended) box.textContent = ENDED;
      else box.textContent = "No quote came back. Open the page again.";
    } catch {
      if (own.signal.aborted) return;
      box.textContent = "The service does not answer. Nothing was bought.";
    }
    box.removeAttribute("aria-busy");
  }

  function changed() {
    const value = parsed(price.value);
    if (buy) buy.textContent = value > 0 ? `Buy for epsilon ${value}` : "Buy";
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE_MS);
  }

  for (const slider of form.querySelectorAll("[data-slider]")) joinSlider(slider, price, changed);
  form.addEventListener("input", (event) => { if (!event.target.matches("[data-slider]")) changed(); });
  // Enter in a field asks for the quote; what costs something is pressed.
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !event.target.matches("input, select")) return;
    event.preventDefault();
    clearTimeout(timer);
    ask();
  });
  form.addEventListener("submit", () => {
    clearTimeout(timer);
    asking?.abort();
    setTimeout(() => { if (buy) buy.disabled = true; });
  });
  addEventListener("focus", () => { if (ended) changed(); });
  addEventListener("pageshow", () => { if (buy) buy.disabled = false; changed(); });
}

/** The state of a question as the service tells it; when it is finished the page is asked for again. */
function followJob(box) {
  const bar = box.querySelector("progress"), phase = box.querySelector("[data-phase]");
  const source = new EventSource(box.dataset.events);
  const heard = (event) => {
    const job = JSON.parse(event.data);
    if (FINISHED.has(job.state) || job.state !== box.dataset.state) {
      source.close();
      location.reload();
      return;
    }
    if (bar) bar.value = job.share;
    if (phase) phase.textContent = job.phase ? `${job.phase} (${Math.round(100 * job.share)}%)` : "";
  };
  for (const name of ["job", "end"]) source.addEventListener(name, heard);
}

for (const form of document.querySelectorAll("form[data-quote]")) followQuote(form);
for (const box of document.querySelectorAll("[data-events]")) followJob(box);
