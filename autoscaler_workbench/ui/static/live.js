// What is shown stays when its source is gone, and would look as if it were true now: the page says so until it is heard of again.
(() => {
  const lost = document.getElementById("lost");
  const say = text => () => { lost.textContent = text; };
  const old = "`autoscaler ui` does not answer: what you see is old. Start it again, and open the address that it prints.";
  document.body.addEventListener("htmx:sseError", say(old));
  document.body.addEventListener("htmx:sseOpen", say(""));
})();
