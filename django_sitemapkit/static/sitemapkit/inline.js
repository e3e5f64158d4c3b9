/* Links the sitemap of an object from the tools above the object's form; the inline is below it. */
"use strict";

document.addEventListener("DOMContentLoaded", () => {
    const inline = document.getElementById("sitemapkit-inline");
    const tools = document.querySelector("#content-main .object-tools");
    if (inline && tools) {
        const link = document.createElement("a");
        link.href = `#${inline.id}`;
        link.textContent = inline.dataset.name;
        const item = document.createElement("li");
        item.append(link);
        tools.prepend(item);
    }
});
