/** The systemd units of the orchestrator and the agent: systemd.service(5), systemd.exec(5). */

export const SERVE_UNIT = 'orch-serve.service';
export const AGENT_UNIT = 'orch-agent.service';
/** Unit that exists while a new release of the agent is on trial. */
export const UPGRADE_UNIT = 'orch-agent-upgrade.service';

/** Unit that exists while an apply of the agent may have to be undone. */
export const RESTORE_UNIT = 'orch-agent-restore.service';

/** User that runs the orchestrator. */
export const SERVE_USER = 'orch';
/** Directory of the orchestrator's keys and store; `StateDirectory` gives it to its user. */
export const SERVE_DATA_DIR = '/var/lib/orch';
/** File in which a running orchestrator writes its addresses. */
export const READY_FILE = '/run/orch/ready.json';

/**
 * Returns the unit of the orchestrator. It runs without any privilege and sees nothing but its own directories.
 * @param orch words that start the command, such as `/usr/bin/orch`
 */
export const serveUnit = (orch: readonly string[]): string => `[Unit]
Description=orch orchestrator
Documentation=man:orch-serve(1)
Wants=network-online.target
After=network-online.target
# Waits for the file system of the data, if it has one of its own.
RequiresMountsFor=${SERVE_DATA_DIR}

[Service]
Type=exec
User=${SERVE_USER}
Group=${SERVE_USER}
# Remembers outside of the data directory that this is a file system of its own: an unmounted one must not look like a new one.
Environment=XDG_STATE_HOME=/var/lib/orch-serve
StateDirectory=orch orch-serve
StateDirectoryMode=0700
RuntimeDirectory=orch
ExecStart=${commandLine([...orch, 'serve', '--data-dir', SERVE_DATA_DIR, '--ready-file', READY_FILE])}
ExecReload=/bin/kill -HUP $MAINPID
Restart=on-failure
RestartSec=5
TimeoutStopSec=30
LimitNOFILE=65536
LimitCORE=0
UMask=0077

CapabilityBoundingSet=
DevicePolicy=closed
LockPersonality=yes
NoNewPrivileges=yes
PrivateDevices=yes
PrivateTmp=yes
PrivateUsers=yes
ProcSubset=pid
ProtectClock=yes
ProtectControlGroups=yes
ProtectHome=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
ProtectSystem=strict
RemoveIPC=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources

[Install]
WantedBy=multi-user.target
`;

/**
 * Returns the unit of the agent, which runs as root without any restriction: it does what modules declare.
 * @param orch words that start the command
 * @param words arguments of `orch agent`, such as `connect` and an address
 */
export const agentUnit = (orch: readonly string[], words: readonly string[] = []): string => `[Unit]
Description=orch agent
Documentation=man:orch-agent(1)
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
ExecStart=${commandLine([...orch, 'agent', ...words])}
# With another key than the expected one, the agent keeps running, does nothing for it, and dials again.
Restart=always
RestartSec=5
# Lets the agent finish the resource in progress.
KillMode=mixed
TimeoutStopSec=90
# Shells and commands of operators run in this unit and count against its limits. Stopping the unit ends them. A command that
# runs out of memory must not end the agent.
TasksMax=16384
OOMPolicy=continue
LimitNOFILE=65536
LimitCORE=0
UMask=0077

[Install]
WantedBy=multi-user.target
`;

/**
 * Returns the unit of the trial of a new release. It starts again after a restart of the machine, until the trial has ended.
 * @param release directory of the release that runs the trial, which is the old one
 * @param dataDir data directory of the agent
 */
export const upgradeUnit = (release: string, dataDir: string): string => `[Unit]
Description=trial of a new release of the orch agent

[Service]
Type=exec
ExecStart=${commandLine([`${release}/bin/node`, `${release}/dist/orch/upgrade-trial.js`, dataDir])}
Restart=on-failure
RestartSec=5
LimitCORE=0
UMask=0077

[Install]
WantedBy=multi-user.target
`;

/**
 * Returns the unit that undoes an apply when the agent cannot. It starts again after a restart of the machine, until the apply is
 * confirmed or undone.
 * @param node path of Node
 * @param script file that it runs
 * @param dataDir data directory of the agent
 */
export const restoreUnit = (node: string, script: string, dataDir: string): string => `[Unit]
Description=return of what an apply of the orch agent has replaced

[Service]
Type=exec
ExecStart=${commandLine([node, script, dataDir])}
Restart=on-failure
RestartSec=5
LimitCORE=0
UMask=0077

[Install]
WantedBy=multi-user.target
`;

/** Quotes words for `ExecStart`, where `%` and `$` have a meaning and a path must be absolute. */
const commandLine = (words: readonly string[]): string =>
  words
    .map((word) => {
      const plain = word.replaceAll('%', '%%').replaceAll('$', '$$$$');
      return /^[\w@%+=:,./$-]+$/.test(plain) ? plain : `"${plain.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
    })
    .join(' ');
