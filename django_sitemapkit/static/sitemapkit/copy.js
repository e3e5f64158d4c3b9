/* Buttons that copy a text to the clipboard; without this script they stay hidden. */
"use strict";

if (navigator.clipboard) {
    for (const button of document.querySelectorAll("[data-copy]")) {
        button.hidden = false;
        button.addEventListener("click", async () => {
            await navigator.clipboard.writeText(button.dataset.copy);
            button.textContent = button.dataset.copied;
        });
    }
}
