/* Keeps the progress of a build up to date; without it, a link reloads the page. */
"use strict";

{
    const PAUSE = 1500;
    const box = document.getElementById("sitemapkit-progress");

    const show = (answer) => {
        const bar = box.querySelector("progress");
        box.querySelector("[role=status]").textContent = answer.text;
        if (answer.total) {
            bar.max = answer.total;
            bar.value = answer.done;
        } else {
            bar.removeAttribute("value");
        }
    };

    const ask = async () => {
        try {
            const response = await fetch(box.dataset.url, {
                headers: {Accept: "application/json"},
                redirect: "error",
            });
            if (response.ok) {
                const answer = await response.json();
                if (answer.state !== box.dataset.state) {
                    window.location.reload();
                    return;
                }
                show(answer);
            }
        } catch {
            /* The server is away for a moment, or nobody is logged in any more: the link tells. */
        }
        window.setTimeout(ask, PAUSE);
    };

    if (box && box.dataset.url) {
        window.setTimeout(ask, PAUSE);
    }
}
