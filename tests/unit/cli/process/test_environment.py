"""Variables of ours that nobody reads are named, with what may be meant."""

from meshwright.cli.process.environment import of_program, unknown
from meshwright.controller.settings.settings import Settings, variables


def test_a_slip_in_a_variable_is_asked_about() -> None:
    """Of settings and of flags; others' variables are theirs."""
    environment = {
        "MESHWRIGHT_QUIET_SECOND": "1",
        "MESHWRIGHT_LOG_LEVEL": "info",
        "MESHWRIGHT_CREDENTAILS": "x",
        "MESHWRIGHT_ZZZ": "",
        "MESHRIGHT_STATE": "",
        "PATH": "",
    }
    assert unknown(environment, variables() | of_program()) == {
        "MESHWRIGHT_CREDENTAILS": "MESHWRIGHT_CREDENTIALS",
        "MESHWRIGHT_QUIET_SECOND": "MESHWRIGHT_QUIET_SECONDS",
        "MESHWRIGHT_ZZZ": None,
    }


def test_what_kubernetes_says_of_services_is_no_slip() -> None:
    """Of a Service called meshwright, and of one whose name begins so; any other port is one."""
    links = {
        f"{service}_{name}": ""
        for service in ("MESHWRIGHT", "MESHWRIGHT_ADS")
        for name in ("SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_GRPC", "PORT", "PORT_15128_TCP_ADDR")
    }
    assert unknown({**links, "MESHWRIGHT_HTTP_PORT": "1"}, variables()).keys() == {"MESHWRIGHT_HTTP_PORT"}


def test_every_setting_and_every_flag_s_variable_is_known() -> None:
    """So are those that choose images and drivers."""
    known = variables() | of_program()
    assert {f"MESHWRIGHT_{name.upper()}" for name in Settings.model_fields} <= known
    assert {"MESHWRIGHT_ADS", "MESHWRIGHT_ENVOY", "MESHWRIGHT_RUN", "MESHWRIGHT_SIDECAR_CLASS"} <= known
