/** First resources of new modules: one for each kind, and recipes of several resources. */

export const PLATFORMS = ['linux', 'macos', 'windows'] as const;
export type Platform = (typeof PLATFORMS)[number];

interface Starter {
  readonly platforms: readonly Platform[];
  /** Lines of `supports` in place of the platform alone. */
  readonly supports?: readonly string[];
  /** True if `--path` sets the path of the resource. */
  readonly hasPath?: true;
  /** Fields of the resource, after its path. */
  readonly fields: readonly string[];
}

const UNIX: readonly Platform[] = ['linux', 'macos'];
const WINDOWS: readonly Platform[] = ['windows'];

/** The starters by kind, in the order in which they are offered. */
export const STARTERS = {
  'file-unix': {
    platforms: UNIX,
    hasPath: true,
    fields: ['mode: "0644"', 'content: |', `  Managed by orch on \${{ agent.name }}.`],
  },
  'directory-unix': { platforms: UNIX, hasPath: true, fields: ['mode: "0755"'] },
  'symlink-unix': { platforms: UNIX, hasPath: true, fields: ['target: /srv/app/releases/1'] },
  'line-unix': { platforms: UNIX, hasPath: true, fields: ['line: example=true'] },
  'block-unix': {
    platforms: UNIX,
    hasPath: true,
    fields: ['name: example', 'content: |', `  # Managed by orch on \${{ agent.name }}.`],
  },
  'setting-unix': { platforms: UNIX, hasPath: true, fields: ['format: ini', 'key: example', 'value: "true"'] },
  'archive-unix': {
    platforms: UNIX,
    fields: [
      'path: /opt/app',
      'url: https://example.net/app-1.0.tar.gz',
      'sha256: 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824',
      'strip: 1',
    ],
  },
  'git-unix': {
    platforms: UNIX,
    fields: ['path: /srv/app', 'url: https://example.net/app.git', 'revision: v1.0'],
  },
  'host-entry-unix': { platforms: UNIX, fields: ['name: db.example.net', 'addresses: [192.0.2.5]'] },
  'sysctl-linux': { platforms: ['linux'], fields: ['key: vm.swappiness', 'value: 10'] },
  'hostname-linux': { platforms: ['linux'], fields: [`name: \${{ agent.name }}`] },
  'timezone-linux': { platforms: ['linux'], fields: ['name: Europe/Berlin'] },
  'locale-linux': { platforms: ['linux'], fields: ['lang: en_US.UTF-8'] },
  'kernel-module-linux': { platforms: ['linux'], fields: ['name: br_netfilter'] },
  'alternatives-linux': {
    platforms: ['linux'],
    supports: ['  - distro: debian', '  - distro: ubuntu'],
    fields: ['name: editor', 'path: /usr/bin/vim.basic'],
  },
  'mount-linux': {
    platforms: ['linux'],
    fields: ['path: /srv/cache', 'source: tmpfs', 'type: tmpfs', 'options: [size=256m, nosuid, nodev]'],
  },
  'user-unix': { platforms: UNIX, fields: ['name: deploy', 'shell: /bin/sh'] },
  'authorized-key-unix': {
    platforms: UNIX,
    fields: [
      'user: deploy',
      'key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBzOWiVP5kW0mPpVVQUQ8vFvTzY0ZqPnGmmdQ7q6mXfE ada@laptop',
    ],
  },
  'cron-unix': {
    platforms: ['linux'],
    fields: ['name: example', 'schedule: "0 3 * * *"', 'user: root', 'command: /usr/local/bin/example'],
  },
  'group-unix': { platforms: UNIX, fields: ['name: deploy'] },
  'package-apt': {
    platforms: ['linux'],
    supports: ['  - distro: debian', '  - distro: ubuntu'],
    fields: ['name: curl'],
  },
  'package-dnf': {
    platforms: ['linux'],
    supports: ['  - distro: fedora', '  - distro: rocky'],
    fields: ['name: curl'],
  },
  'repository-apt': {
    platforms: ['linux'],
    supports: ['  - distro: debian', '  - distro: ubuntu'],
    fields: [
      'name: example',
      'uris: [https://apt.example.net/debian]',
      'suites: [bookworm]',
      'components: [main]',
      'key_url: https://apt.example.net/key.asc',
      'key_sha256: "0000000000000000000000000000000000000000000000000000000000000000"',
    ],
  },
  'repository-dnf': {
    platforms: ['linux'],
    supports: ['  - distro: fedora', '  - distro: rocky'],
    fields: [
      'name: example',
      'baseurl: [https://rpm.example.net/$releasever/$basearch]',
      'key_url: https://rpm.example.net/key.asc',
      'key_sha256: "0000000000000000000000000000000000000000000000000000000000000000"',
    ],
  },
  'package-brew': { platforms: ['macos'], fields: ['name: jq'] },
  'service-systemd': {
    platforms: ['linux'],
    supports: ['  - platform: linux', '    init_system: systemd'],
    fields: ['name: nginx', 'enabled: true', 'running: true'],
  },
  'timer-systemd': {
    platforms: ['linux'],
    supports: ['  - platform: linux', '    init_system: systemd'],
    fields: ['name: example', 'command: /usr/local/bin/example', 'on_calendar: "*-*-* 03:00"', 'persistent: true'],
  },
  'service-openrc': {
    platforms: ['linux'],
    supports: ['  - platform: linux', '    init_system: openrc'],
    fields: ['name: nginx', 'enabled: true', 'running: true'],
  },
  'service-launchd': { platforms: ['macos'], fields: ['name: com.example.web', 'enabled: true', 'running: true'] },
  'file-windows': {
    platforms: WINDOWS,
    hasPath: true,
    fields: [`content: "Managed by orch on \${{ agent.name }}.\\r\\n"`],
  },
  'directory-windows': { platforms: WINDOWS, hasPath: true, fields: [] },
  'user-windows': { platforms: WINDOWS, fields: ['name: deploy', 'groups: [Users]'] },
  'group-windows': { platforms: WINDOWS, fields: ['name: Deployers'] },
  'package-winget': { platforms: WINDOWS, fields: ['name: Git.Git'] },
  'package-choco': { platforms: WINDOWS, fields: ['name: git'] },
  'service-windows': { platforms: WINDOWS, fields: ['name: Spooler', 'running: true', 'start_type: auto'] },
  script: {
    platforms: PLATFORMS,
    fields: ['program: sh', 'check: test -e /var/tmp/orch-example', 'apply: touch /var/tmp/orch-example'],
  },
} as const satisfies Readonly<Record<string, Starter>>;

export type StarterKind = keyof typeof STARTERS;

const isKind = (word: string): word is StarterKind => Object.hasOwn(STARTERS, word);
export const STARTER_KINDS: readonly StarterKind[] = Object.keys(STARTERS).filter(isKind);

/** Returns the starter of a kind as one type. */
export const starterOf = (kind: StarterKind): Starter => STARTERS[kind];

/** Returns the kinds of a platform, the most common one first. */
export const startersFor = (platform: Platform): readonly StarterKind[] =>
  STARTER_KINDS.filter((kind) => starterOf(kind).platforms.includes(platform));

/** Fields of a script on Windows. */
export const POWERSHELL_FIELDS = [
  'program: powershell',
  'check: if (-not (Test-Path C:\\orch-example)) { exit 1 }',
  'apply: New-Item -Force C:\\orch-example | Out-Null',
];

const SYSTEMD = ['supports:', '  - platform: linux', '    init_system: systemd'];
const DEBIAN = [
  'supports:',
  '  - distro: debian',
  '    init_system: systemd',
  '  - distro: ubuntu',
  '    init_system: systemd',
];

/** Recipes: the lines of a module after its name. */
export const RECIPES = {
  'nginx-site': [
    ...DEBIAN,
    'templates:',
    '  - id: server',
    '    content: |',
    '      server {',
    '          listen 80;',
    '          server_name _;',
    '          root /srv/www/site;',
    '          location / { try_files $uri $uri/ =404; }',
    '      }',
    'resources:',
    '  - id: package',
    '    package-apt: {name: nginx-light}',
    '  - directory-unix: {path: /srv/www/site, owner: root, group: root, mode: "0755"}',
    '  - file-unix:',
    '      path: /srv/www/site/index.html',
    '      content: |',
    '        <!doctype html>',
    `        <title>\${{ agent.name }}</title>`,
    '      mode: "0644"',
    '  # Without %s, nginx checks the whole configuration with the new file in place. The old file comes back if it refuses it.',
    '  - id: server',
    '    depends_on: [package]',
    '    file-unix: {path: /etc/nginx/conf.d/site.conf, template: server, mode: "0644", validate: nginx -t}',
    '  - depends_on: [server]',
    '    service-systemd: {name: nginx, enabled: true, running: true, reload_on: [server]}',
  ],
  'user-with-keys': [
    'supports:',
    '  - platform: linux',
    'resources:',
    '  # Public keys are not secret. Replace this line with your own.',
    '  - user-unix:',
    '      name: ada',
    '      shell: /bin/bash',
    '      authorized_keys:',
    '        keys:',
    '          - ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGX8H8CIDq8ado/AE5gALzoCfdOT74DpkGxXQTtmy/Jf ada@example.net',
    '        # Other keys in the file are taken away.',
    '        exclusive: true',
  ],
  timer: [
    ...SYSTEMD,
    'resources:',
    '  - id: program',
    '    file-unix:',
    '      path: /usr/local/sbin/orch-nightly',
    '      content: |',
    '        #!/bin/sh',
    '        set -eu',
    '        echo "it is $(date)"',
    '      mode: "0755"',
    '  - depends_on: [program]',
    '    timer-systemd:',
    '      name: orch-nightly',
    '      command: /usr/local/sbin/orch-nightly',
    '      on_calendar: "*-*-* 02:15"',
    '      persistent: true',
  ],
  container: [
    ...DEBIAN,
    'resources:',
    '  - id: podman',
    '    package-apt: {name: podman}',
    '  # Pin the version of the image: the unit starts whatever this name means at that time.',
    '  - depends_on: [podman]',
    '    service-systemd:',
    '      name: web-container',
    '      description: A web server in a container',
    '      exec_start: >-',
    '        /usr/bin/podman run --rm --replace --name web --publish 127.0.0.1:8080:80',
    '        docker.io/library/nginx:1.27-alpine',
    '      restart: on_failure',
    '      dependencies: [network-online.target]',
    '      enabled: true',
    '      running: true',
  ],
} as const satisfies Readonly<Record<string, readonly string[]>>;

export type Recipe = keyof typeof RECIPES;

const isRecipe = (word: string): word is Recipe => Object.hasOwn(RECIPES, word);
export const RECIPE_NAMES: readonly Recipe[] = Object.keys(RECIPES).filter(isRecipe);
