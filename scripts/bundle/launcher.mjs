/** The command itself: looks at the version of Node before it loads anything that an old one could not even parse. */

/**
 * Returns the text of a program in the JavaScript of 2009, which every Node runs.
 *
 * @param {string} range the supported versions, as in `engines` of package.json: `>=20.19.0`
 * @param {string} main the file to load when the version will do
 */
export function launcherFor(range, main) {
  const [, major, minor] = /^>=(\d+)\.(\d+)\.\d+$/.exec(range) ?? [];
  if (major === undefined) throw new Error(`the launcher does not understand the versions ${range}`);
  return `#!/usr/bin/env node
'use strict';
var version = process.versions.node.split('.');
if (Number(version[0]) > ${major} || (Number(version[0]) === ${major} && Number(version[1]) >= ${minor})) {
  require('./${main}');
} else {
  process.stderr.write(
    'orch: this is Node.js ' + process.versions.node + ' (' + process.execPath + '), and orch needs ${major}.${minor} or newer\\n' +
    '  hint: install a newer one (https://nodejs.org/en/download), or put it first in PATH; "node --version" tells which one runs\\n'
  );
  process.exitCode = 1;
}
`;
}
