"""Parameters of gateways, as a user writes them into a ConfigMap."""

import pytest

from meshwright.kubernetes.gateways.parameters import (
    GatewayParameters,
    ParametersError,
    ServiceType,
    read_parameters,
)


def test_all_keys_are_read() -> None:
    """The whole value."""
    data = {
        "replicas": "3",
        "serviceType": "ClusterIP",
        "resources": "requests: {cpu: 100m, memory: 128Mi}\n",
    }
    assert read_parameters(data) == GatewayParameters(
        3, ServiceType.CLUSTER_IP, {"requests": {"cpu": "100m", "memory": "128Mi"}}
    )


def test_empty_config_map_has_the_defaults() -> None:
    """Two proxies behind a load balancer."""
    assert read_parameters({}) == GatewayParameters(2, ServiceType.LOAD_BALANCER, {})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"replicas": "many"}, "data.replicas is 'many': must be a number from 0 to 1000"),
        ({"replicas": "-1"}, "data.replicas is '-1': must be a number from 0 to 1000"),
        ({"replicas": "1001"}, "data.replicas is '1001': must be a number from 0 to 1000"),
        ({"replicas": "٣"}, "data.replicas is '٣': must be a number from 0 to 1000"),
        (
            {"serviceType": "ExternalName"},
            "data.serviceType is 'ExternalName': must be one of ClusterIP, NodePort, LoadBalancer",
        ),
        ({"resources": "[]"}, "data.resources must be a mapping with limits and requests, as in a Pod"),
        ({"resources": "cpu: 1"}, "data.resources must be a mapping with limits and requests, as in a Pod"),
        (
            {"resources": "limits: 1"},
            "data.resources.limits and .requests must be mappings, for example {cpu: 100m}",
        ),
        ({"replica": "2"}, "data.replica is unknown; the keys are replicas, resources, serviceType"),
    ],
)
def test_wrong_values_are_named(data: dict[str, str], message: str) -> None:
    """The text names the key, the value, and what would be right."""
    with pytest.raises(ParametersError) as raised:
        read_parameters(data)
    assert str(raised.value) == message


def test_resources_that_are_no_yaml_are_named() -> None:
    """The reason is the parser's."""
    with pytest.raises(ParametersError, match=r"^data\.resources is not YAML: "):
        read_parameters({"resources": "{"})
