// Reads objects as lines of JSON and writes them with npm's sitemap: site and folder are given.
import { createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { SitemapAndIndexStream, SitemapStream, lineSeparatedURLsToSitemapOptions } from 'sitemap'

const [hostname, folder] = process.argv.slice(2)

// It writes a few bytes at a time, and node's gzip hands each write to another thread: gathered, they
// take a tenth of the time.
const gathered = () => {
  let parts = []
  let size = 0
  const handOn = (stream) => {
    stream.push(Buffer.concat(parts))
    parts = []
    size = 0
  }
  return new Transform({
    transform(part, _, done) {
      parts.push(part)
      size += part.length
      if (size >= 65536) handOn(this)
      done()
    },
    flush(done) {
      if (size) handOn(this)
      done()
    },
  })
}

const sitemaps = new SitemapAndIndexStream({
  limit: 50000,
  getSitemapStream: (number) => {
    const name = `sitemap-${number}.xml.gz`
    const stream = new SitemapStream({ hostname })
    const written = stream
      .pipe(gathered())
      .pipe(createGzip({ level: 6 }))
      .pipe(createWriteStream(join(folder, name)))
    return [new URL(name, hostname).toString(), stream, written]
  },
})

await pipeline(
  lineSeparatedURLsToSitemapOptions(process.stdin),
  sitemaps,
  createGzip({ level: 6 }),
  createWriteStream(join(folder, 'sitemap-index.xml.gz')),
)
