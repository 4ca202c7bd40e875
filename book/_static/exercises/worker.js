// The Python of an exercise's page, away from the page, so that a loop without an end stops nothing but itself.
// The page sends {load: ...} once and then {steps: [...]}; back come {loaded}, {ready}, {begins}, {ends, result},
// {done} and {broken}.
"use strict";

let step; // onelaunch.grading.in_page.step

// Pyodide fetches its files itself; this counts what arrives, and lets nothing in from another host that is not as
// it should be.
function countingFetch(python) {
  const plain = self.fetch.bind(self);
  let loaded = 0;
  const total = Object.values(python.files).reduce((sum, [bytes]) => sum + bytes, 0);
  const arrived = (bytes) => {
    loaded += bytes;
    self.postMessage({ loaded: Math.min(1, loaded / total) });
  };
  return async (url, options) => {
    const name = new URL(url, self.location).pathname.split("/").pop();
    const checked = python.bundled ? {} : { integrity: python.files[name]?.[1], mode: "cors", credentials: "omit" };
    const answer = await plain(url, { ...options, ...checked });
    if (!answer.ok) throw new Error(`${url} was answered with ${answer.status}`);
    if (!answer.body || !(name in python.files)) return answer;
    const counter = new TransformStream({
      transform(chunk, out) {
        arrived(chunk.byteLength);
        out.enqueue(chunk);
      },
    });
    // Not every server knows what a .wasm is, and the browser compiles while it loads only what says so.
    const type = name.endsWith(".wasm") ? "application/wasm" : answer.headers.get("content-type") || "";
    return new Response(answer.body.pipeThrough(counter), { headers: { "content-type": type } });
  };
}

// A script by way of fetch, where it is counted and checked; importScripts alone would do neither.
async function runScript(url) {
  const address = URL.createObjectURL(new Blob([await (await self.fetch(url)).text()], { type: "text/javascript" }));
  self.importScripts(address);
  URL.revokeObjectURL(address);
}

async function load({ python, pack }) {
  self.fetch = countingFetch(python);
  await runScript(`${python.at}pyodide.js`);
  await runScript(`${python.at}pyodide.asm.js`);
  const pyodide = await self.loadPyodide({ indexURL: python.at, stdin: () => null });
  const answer = await self.fetch(pack);
  pyodide.unpackArchive(await answer.arrayBuffer(), "zip", { extractDir: "/lib/onelaunch_in_page" });
  pyodide.runPython("import sys; sys.path.insert(0, '/lib/onelaunch_in_page')");
  step = pyodide.runPython("from onelaunch.grading.in_page import step; step");
  self.postMessage({ ready: true });
}

function run(steps) {
  for (const [at, asked] of steps.entries()) {
    self.postMessage({ begins: at });
    self.postMessage({ ends: at, result: JSON.parse(step(JSON.stringify(asked))) });
  }
  self.postMessage({ done: true });
}

self.onmessage = async ({ data }) => {
  try {
    if (data.load) await load(data.load);
    else run(data.steps);
  } catch (error) {
    self.postMessage({ broken: String(error?.message || error).trim().split("\n").pop() });
  }
};
