// What the page of the console does first: the code in the fragment becomes a token of its own.
const code = new URLSearchParams(location.hash.slice(1)).get("code");
history.replaceState(null, "", location.pathname);
if (code) {
  const answer = await fetch("/api/v1/signin", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }) });
  document.title = answer.ok ? "signed in" : "not signed in";
}
