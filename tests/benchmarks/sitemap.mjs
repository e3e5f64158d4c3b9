// Reads objects as lines of JSON and writes them with npm's sitemap: site and folder are given.
import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { SitemapAndIndexStream, SitemapStream, lineSeparatedURLsToSitemapOptions } from 'sitemap'

const [hostname, folder] = process.argv.slice(2)

const sitemaps = new SitemapAndIndexStream({
  limit: 50000,
  getSitemapStream: (number) => {
    const name = `sitemap-${number}.xml.gz`
    const stream = new SitemapStream({ hostname })
    const written = stream.pipe(createGzip({ level: 6 })).pipe(createWriteStream(join(folder, name)))
    return [new URL(name, hostname).toString(), stream, written]
  },
})

await pipeline(
  lineSeparatedURLsToSitemapOptions(process.stdin),
  sitemaps,
  createGzip({ level: 6 }),
  createWriteStream(join(folder, 'sitemap-index.xml.gz')),
)
