/**
 * The limit of comparing and of writing files in Node: `files.mjs check LIST` ends with 0 when every file has its content,
 * `files.mjs write LIST` writes all of them beside their places, makes them durable together, and puts them into their places.
 * LIST has a path and a content for each file, each ended by a zero byte.
 */
import { closeSync, fdatasync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';

const TOGETHER = 500;
const [verb, list] = process.argv.slice(2);
const texts = readFileSync(list, 'utf8').split('\0');
const files = [];
for (let index = 0; index + 1 < texts.length; index += 2) files.push({ path: texts[index], content: texts[index + 1] });

if (verb === 'check') check();
else await write();

function check() {
  for (const { path, content } of files) {
    if (!readFileSync(path).equals(Buffer.from(content))) process.exit(1);
  }
}

async function write() {
  for (let index = 0; index < files.length; index += TOGETHER) await writeGroup(files.slice(index, index + TOGETHER));
  for (const directory of new Set(files.map(({ path }) => dirname(path)))) {
    const handle = openSync(directory);
    fsyncSync(handle);
    closeSync(handle);
  }
}

async function writeGroup(group) {
  const handles = group.map(({ path, content }) => {
    const handle = openSync(`${path}.new`, 'wx');
    writeSync(handle, content);
    return handle;
  });
  await Promise.all(handles.map((handle) => promisify(fdatasync)(handle)));
  for (const handle of handles) closeSync(handle);
  for (const { path } of group) renameSync(`${path}.new`, path);
}
