/** Values that completion asks the orchestrator, or the disk, for. */
export type LiveValue =
  | 'node'
  | 'module'
  | 'assignment'
  | 'operator'
  | 'secret'
  | 'operation'
  | 'drift'
  | 'window'
  | 'channel'
  | 'notification'
  | 'terminal'
  | 'profile'
  | 'file';
