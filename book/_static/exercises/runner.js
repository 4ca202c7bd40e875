// Keeps the worker of an exercise's page: makes it on the first run, ends it when a step takes too long, makes a new one.
"use strict";

window.onelaunch = window.onelaunch || {};

window.onelaunch.Runner = class Runner {
  // settings: what exercise_pages.py puts on the page. onLoading(share): called while Python is loaded, share from 0 to 1.
  constructor(settings, onLoading) {
    this.settings = settings;
    this.onLoading = onLoading;
    this.worker = null;
    this.finish = null; // ends the run that is going on
  }

  get running() {
    return this.finish !== null;
  }

  // Run the steps in order; onStep(at, result) for each that ends. The promise gives {ended: true}, or what stopped it:
  // {slow: at}, {broken: message, at}, {cancelled: true} or {unloaded: message}.
  run(steps, onStep) {
    return new Promise((resolve) => {
      let timer = null;
      let at = -1;
      this.finish = (outcome) => {
        clearTimeout(timer);
        this.finish = null;
        if (!outcome.ended) this.end();
        resolve(outcome);
      };
      const failed = (message) => this.finish?.(at < 0 ? { unloaded: message } : { broken: message, at });
      // From here on something has to come from the worker in time: that a step begins, or that it ends.
      const wait = () => {
        clearTimeout(timer);
        timer = setTimeout(() => this.finish?.({ slow: at }), this.settings.seconds * 1000);
      };
      const send = () => {
        this.worker.postMessage({ steps });
        wait();
      };
      const fresh = this.worker === null;
      if (fresh) {
        try {
          this.worker = new Worker(this.settings.worker);
        } catch (error) {
          failed(error.message);
          return;
        }
      }
      this.worker.onerror = (event) => {
        event.preventDefault();
        failed(event.message || "the worker could not be started");
      };
      this.worker.onmessage = ({ data }) => {
        if (data === null || typeof data !== "object") return; // sent by an answer
        if ("loaded" in data) this.onLoading(data.loaded);
        else if (data.ready) send();
        else if ("begins" in data) {
          at = data.begins;
          wait();
        } else if ("ends" in data) {
          wait();
          onStep(data.ends, data.result);
        } else if (data.done) this.finish?.({ ended: true });
        else if (data.broken) failed(data.broken);
      };
      if (fresh) {
        const absolute = (address) => new URL(address, document.baseURI).href;
        const python = { ...this.settings.python, at: absolute(this.settings.python.at) };
        this.onLoading(0);
        this.worker.postMessage({ load: { python, pack: absolute(this.settings.package) } });
      } else send();
    });
  }

  cancel() {
    this.finish?.({ cancelled: true });
  }

  end() {
    this.worker?.terminate();
    this.worker = null;
  }
};
