// The moment of a recorded day: the slider, five minutes to and fro, and play. All times are UTC, of 24 hours.
(() => {
  const at = document.getElementById("at"), shown = document.getElementById("shown"), play = document.getElementById("play");
  let playing = null;
  const tell = () => { shown.textContent = new Date(1000 * at.value).toISOString().slice(0, 16).replace("T", " "); };
  const go = seconds => {
    at.value = Number(at.value) + seconds;
    at.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const stop = () => {
    clearInterval(playing);
    playing = null;
    play.textContent = "play";
    play.setAttribute("aria-pressed", "false");
  };
  at.addEventListener("input", tell);
  document.getElementById("back").addEventListener("click", () => go(-300));
  document.getElementById("on").addEventListener("click", () => go(300));
  play.addEventListener("click", () => {
    if (playing !== null) { stop(); return; }
    play.textContent = "stop";
    play.setAttribute("aria-pressed", "true");
    playing = setInterval(() => { if (Number(at.value) >= Number(at.max) - 59) stop(); else go(300); }, 500);
  });
  tell();
})();
