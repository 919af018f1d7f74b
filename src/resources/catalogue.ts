/** The catalogue of all resource kinds. */
import { ABSENCES } from './absence.js';
import { alternativesLinux } from './alternatives-linux.js';
import { archiveUnix } from './archive-unix.js';
import { authorizedKeyUnix } from './authorized-key-unix.js';
import { blockUnix } from './block-unix.js';
import { cronUnix } from './cron-unix.js';
import { directoryUnix } from './directory-unix.js';
import { directoryWindows } from './directory-windows.js';
import { fileUnix } from './file-unix.js';
import { fileWindows } from './file-windows.js';
import { gitUnix } from './git-unix.js';
import { groupUnix } from './group-unix.js';
import { groupWindows } from './group-windows.js';
import { hostEntryUnix } from './host-entry-unix.js';
import { hostnameLinux } from './hostname-linux.js';
import { kernelModuleLinux } from './kernel-module-linux.js';
import type { ResourceKind } from './kind.js';
import { lineUnix } from './line-unix.js';
import { localeLinux } from './locale-linux.js';
import { mountLinux } from './mount-linux.js';
import { packageApt } from './package-apt.js';
import { packageBrew } from './package-brew.js';
import { packageChoco } from './package-choco.js';
import { packageDnf } from './package-dnf.js';
import { packageWinget } from './package-winget.js';
import { repositoryApt } from './repository-apt.js';
import { repositoryDnf } from './repository-dnf.js';
import { script } from './script.js';
import { serviceLaunchd } from './service-launchd.js';
import { serviceOpenrc } from './service-openrc.js';
import { serviceSystemd } from './service-systemd.js';
import { serviceWindows } from './service-windows.js';
import { settingUnix } from './setting-unix.js';
import { symlinkUnix } from './symlink-unix.js';
import { sysctlLinux } from './sysctl-linux.js';
import { timerSystemd } from './timer-systemd.js';
import { timezoneLinux } from './timezone-linux.js';
import { userUnix } from './user-unix.js';
import { userWindows } from './user-windows.js';

const byName = (kinds: readonly { readonly kind: string }[]): ReadonlyMap<string, ResourceKind> =>
  new Map(kinds.map((kind) => [kind.kind, kind as ResourceKind]));

/** The kinds that stand below `resource` in a module, by name, without their body types. */
export const MODULE_KINDS = byName([
  fileUnix,
  directoryUnix,
  symlinkUnix,
  lineUnix,
  blockUnix,
  settingUnix,
  archiveUnix,
  gitUnix,
  hostEntryUnix,
  sysctlLinux,
  hostnameLinux,
  timezoneLinux,
  localeLinux,
  kernelModuleLinux,
  alternativesLinux,
  mountLinux,
  fileWindows,
  directoryWindows,
  groupUnix,
  userUnix,
  authorizedKeyUnix,
  cronUnix,
  groupWindows,
  userWindows,
  serviceWindows,
  packageApt,
  packageDnf,
  repositoryApt,
  repositoryDnf,
  packageBrew,
  packageChoco,
  packageWinget,
  serviceSystemd,
  timerSystemd,
  serviceOpenrc,
  script,
  serviceLaunchd,
]);

/** All kinds of resources that an agent may get: those of modules, and the absences. */
export const CATALOGUE: ReadonlyMap<string, ResourceKind> = new Map([...MODULE_KINDS, ...byName(ABSENCES)]);
