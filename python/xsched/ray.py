"""XSched for Ray: the runtime environment of a task, an actor, a job or a deployment says how urgent it is on a GPU that it shares.

    @ray.remote(num_gpus=0.5, runtime_env={"xsched": {"priority": 10}})
    class Server: …

The keys are the options of `xsched run`, with _ for -. Each node loads the plugin if this is set where the node is started:

    export RAY_RUNTIME_ENV_PLUGINS='[{"class": "xsched.ray.XSchedPlugin"}]'
    ray start …

A worker then runs as `xsched run --no-server … -- python …`: natively if the node has no server, or no XSched. See docs/deploy/ray.md. **Not run
on hardware.**
"""
import functools
import logging
import shlex
import subprocess
from typing import Any, Dict, List, Optional, Tuple

from ray._private.runtime_env.plugin import RuntimeEnvPlugin

from . import programs

# Of each key: what its value is.
_KEYS: Dict[str, type] = {
    **dict.fromkeys(["priority", "utilization", "weight", "deadline_us", "laxity_us", "guarantee_us", "period_us", "limit_us", "burst_us",
                     "latency_target_us", "floor", "level", "threshold", "batch_size"], int),
    **dict.fromkeys(["memory", "gang"], str),
}
_PATIENCE_S = 10


def options(value: Any) -> List[str]:
    """The options of `xsched run` for this value of the field `xsched`. ValueError: it is no dictionary of known keys."""
    if not isinstance(value, dict):
        raise ValueError(f'runtime_env["xsched"] is a dictionary, such as {{"priority": 10}}, and not {value!r}')
    for key, content in value.items():
        if key not in _KEYS:
            raise ValueError(f'runtime_env["xsched"] has no key {key!r}. It has {", ".join(_KEYS)}')
        if not isinstance(content, _KEYS[key]) or isinstance(content, bool):
            raise ValueError(f'runtime_env["xsched"]["{key}"] is of type {_KEYS[key].__name__}, and not {content!r}')
    return [f"--{key.replace('_', '-')}={content}" for key, content in value.items()]


@functools.lru_cache(maxsize=256)  # the agent of the node does nothing else meanwhile
def _check(command: Tuple[str, ...]) -> None:
    """ValueError: `xsched run` refuses its options. TimeoutExpired, OSError: it does not answer."""
    tried = subprocess.run([*command, "/bin/true"], capture_output=True, encoding="utf-8", errors="replace", timeout=_PATIENCE_S, check=False)
    if tried.returncode != 0:
        raise ValueError(f'runtime_env["xsched"]: {tried.stderr.strip()}')


def _without_job(value: Dict[str, Any], runtime_env: Dict[str, Any]) -> List[str]:
    """What starts the worker without the job that `xsched run` makes for each program, or that the node was started with. Ray Train says in
    the running worker which ranks are one job (MASTER_ADDR and so on), and XSCHED_JOB takes precedence over that."""
    is_named = "gang" in value or "XSCHED_JOB" in (runtime_env.get("env_vars") or {})
    return [] if is_named else ["env", "-u", "XSCHED_JOB"]


class XSchedPlugin(RuntimeEnvPlugin):  # type: ignore[misc]
    """Ray makes one on each node."""

    name = "xsched"
    priority = 90  # after those that choose which Python it is

    @staticmethod
    def validate(runtime_env_dict: Dict[str, Any]) -> None:
        """ValueError: the field `xsched` is not as it should be."""
        if runtime_env_dict.get("xsched") is not None:
            options(runtime_env_dict["xsched"])

    def modify_context(self, uris: List[str], runtime_env: Dict[str, Any], context: Any,
                       logger: Optional[logging.Logger] = None) -> None:
        """Has the worker started by `xsched run`. ValueError: a value is out of range."""
        value = runtime_env.get("xsched")
        if value is None:
            return
        chosen = options(value)
        logger = logger or logging.getLogger(__name__)
        program = programs.find("xsched")
        if program is None:
            logger.warning("xsched is not installed on this node: the worker runs unscheduled")
            return
        command = (program, "run", "--no-server", *chosen, "--")
        try:
            _check(command)
        except (OSError, subprocess.TimeoutExpired) as error:
            logger.warning("xsched does not answer on this node: the worker runs unscheduled (%s)", error)
            return
        words = [*command, *_without_job(value, runtime_env)]
        context.py_executable = f"{shlex.join(words)} {context.py_executable}"
