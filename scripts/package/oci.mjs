/**
 * A container image of the orchestrator, as an archive of an OCI image layout. Sources: the OCI image specification 1.1, its
 * parts image-layout.md, manifest.md and config.md.
 */
import { createHash } from 'node:crypto';
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { find, PackagingError, run } from './run.mjs';

const ARCHITECTURE = { x64: 'amd64', arm64: 'arm64' };
const SUITE = 'bookworm';
/** What the runtime needs of the system. */
const SYSTEM = ['libc6', 'libgcc-s1', 'libstdc++6'];
/** User of the orchestrator in the image. */
const USER = 65_532;
/** Directories of that user. */
const OWN_DIRECTORIES = ['var/lib/orch', 'run/orch'];
/** Parts of the system that nothing in the image reads. */
const UNUSED = [
  'var/lib/apt',
  'var/cache',
  'var/lib/dpkg',
  'etc/apt',
  'usr/share/doc',
  'usr/share/man',
  'usr/share/lintian',
];

/**
 * Makes the image. It runs `orch serve` without root; its data is the volume `/var/lib/orch`.
 *
 * @param {{tree: string, scratch: string, out: string, cpu: 'x64' | 'arm64', version: string, level: number}} options the tree, a
 *   directory for intermediate files, the directory of the archive, and the level of compression from 1 to 9
 * @returns {string} the path of the archive
 * @throws {PackagingError} without mmdebstrap, which fetches the libraries of the system
 */
export function makeOci({ tree, scratch, out, cpu, version, level }) {
  if (find('mmdebstrap') === null)
    throw new PackagingError('the libraries of an image are fetched by mmdebstrap: install it');
  const work = join(scratch, `oci-${cpu}`);
  const system = join(work, 'system');
  mkdirSync(work);
  const architecture = ARCHITECTURE[cpu];
  run('mmdebstrap', [
    '--quiet',
    '--variant=extract',
    `--include=${SYSTEM.join(',')}`,
    `--architectures=${architecture}`,
    SUITE,
    system,
  ]);
  for (const path of UNUSED) rmSync(join(system, path), { recursive: true, force: true });
  cpSync(join(tree, 'usr/lib/orch'), join(system, 'usr/lib/orch'), { recursive: true, verbatimSymlinks: true });
  mkdirSync(join(system, 'tmp'), { recursive: true });
  chmodSync(join(system, 'tmp'), 0o1777);
  writeFileSync(
    join(system, 'etc/passwd'),
    `root:x:0:0:root:/root:/sbin/nologin\norch:x:${USER}:${USER}::/var/lib/orch:/sbin/nologin\n`,
  );
  writeFileSync(join(system, 'etc/group'), `root:x:0:\norch:x:${USER}:\n`);
  const data = join(work, 'data');
  for (const path of OWN_DIRECTORIES) mkdirSync(join(data, path), { recursive: true, mode: 0o700 });

  const layout = join(work, 'layout');
  const blobs = join(layout, 'blobs/sha256');
  mkdirSync(blobs, { recursive: true });
  const blob = (mediaType, content) => {
    const hex = createHash('sha256').update(content).digest('hex');
    writeFileSync(join(blobs, hex), content);
    return { mediaType, digest: `sha256:${hex}`, size: content.length };
  };
  const json = (mediaType, value) => blob(mediaType, Buffer.from(JSON.stringify(value)));
  const layers = [layer(system, 0, ['.']), layer(data, USER, OWN_DIRECTORIES)];
  const config = json('application/vnd.oci.image.config.v1+json', {
    architecture,
    os: 'linux',
    config: {
      User: `${USER}:${USER}`,
      Env: [
        'PATH=/usr/lib/orch/bin',
        'HOME=/var/lib/orch',
        'ORCH_SERVE_DATA_DIR=/var/lib/orch',
        'ORCH_SERVE_API_HOST=0.0.0.0',
      ],
      Entrypoint: ['/usr/lib/orch/bin/node', '/usr/lib/orch/dist/orch/orch.js'],
      Cmd: ['serve'],
      WorkingDir: '/var/lib/orch',
      ExposedPorts: { '4747/tcp': {}, '4748/tcp': {} },
      Volumes: { '/var/lib/orch': {} },
      StopSignal: 'SIGTERM',
    },
    rootfs: {
      type: 'layers',
      diff_ids: layers.map((tar) => `sha256:${createHash('sha256').update(tar).digest('hex')}`),
    },
  });
  const manifest = json('application/vnd.oci.image.manifest.v1+json', {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config,
    layers: layers.map((tar) => blob('application/vnd.oci.image.layer.v1.tar+gzip', gzipSync(tar, { level }))),
  });
  const named = {
    ...manifest,
    platform: { architecture, os: 'linux' },
    annotations: { 'org.opencontainers.image.ref.name': version },
  };
  writeFileSync(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  writeFileSync(join(layout, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [named] }));
  const file = join(out, `orch-${version}-oci-${architecture}.tar`);
  run('tar', ['-cf', file, '-C', layout, 'oci-layout', 'index.json', 'blobs']);
  return file;
}

/** Returns parts of a directory as a tar archive whose files belong to one user. */
function layer(directory, user, paths) {
  const file = `${directory}.tar`;
  run('tar', [
    '-cf',
    file,
    '--sort=name',
    '--mtime=@0',
    '--numeric-owner',
    `--owner=${user}`,
    `--group=${user}`,
    '-C',
    directory,
    ...paths,
  ]);
  return readFileSync(file);
}
