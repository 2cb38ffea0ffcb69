"""The job for KubeRay has the fields of its resource, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")
jsonschema = pytest.importorskip("jsonschema")

JOB = Path(__file__).resolve().parents[3] / "packaging/ray-job.yaml"


def object_of(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


TEXT, COUNT, BOOLEAN = {"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "boolean"}
TEXTS = {"type": "object", "additionalProperties": TEXT}
CONTAINER = object_of(
    ["name", "image", "resources", "securityContext"],
    name=TEXT,
    image=TEXT,
    env={"type": "array", "items": object_of(["name", "value"], name=TEXT, value=TEXT)},
    envFrom={"type": "array", "items": object_of(["secretRef"], secretRef=object_of(["name"], name=TEXT))},
    resources=object_of(["requests", "limits"], requests=TEXTS, limits=TEXTS),
    securityContext=object_of(
        [],
        allowPrivilegeEscalation={"const": False},
        capabilities=object_of(["drop"], drop={"const": ["ALL"]}),
    ),
)
TEMPLATE = object_of(["spec"], spec=object_of(["containers"], containers={"type": "array", "items": CONTAINER, "minItems": 1}))

#: The fields that the job uses, with their types in the resource `rayjobs.ray.io`, version v1, of KubeRay.
RAY_JOB = object_of(
    ["apiVersion", "kind", "metadata", "spec"],
    apiVersion={"const": "ray.io/v1"},
    kind={"const": "RayJob"},
    metadata=object_of(["generateName"], generateName=TEXT),
    spec=object_of(
        ["entrypoint", "rayClusterSpec"],
        entrypoint=TEXT,
        submissionMode={"enum": ["K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"]},
        shutdownAfterJobFinishes=BOOLEAN,
        ttlSecondsAfterFinished=COUNT,
        activeDeadlineSeconds=COUNT,
        backoffLimit=COUNT,
        rayClusterSpec=object_of(
            ["headGroupSpec", "authOptions"],
            rayVersion=TEXT,
            authOptions=object_of(["mode"], mode={"const": "token"}),
            headGroupSpec=object_of(["template"], rayStartParams=TEXTS, template=TEMPLATE),
            workerGroupSpecs={
                "type": "array",
                "items": object_of(
                    ["groupName", "minReplicas", "maxReplicas", "template"],
                    groupName=TEXT,
                    replicas=COUNT,
                    minReplicas=COUNT,
                    maxReplicas=COUNT,
                    rayStartParams=TEXTS,
                    template=TEMPLATE,
                ),
            },
        ),
    ),
)


def test_the_job_has_the_fields_of_its_resource() -> None:
    job = yaml.safe_load(JOB.read_text())
    jsonschema.Draft202012Validator(RAY_JOB).validate(job)


def test_a_job_without_a_token_is_refused() -> None:
    job = yaml.safe_load(JOB.read_text())
    job["spec"]["rayClusterSpec"]["authOptions"]["mode"] = "disabled"
    assert not jsonschema.Draft202012Validator(RAY_JOB).is_valid(job)
    del job["spec"]["rayClusterSpec"]["authOptions"]
    assert not jsonschema.Draft202012Validator(RAY_JOB).is_valid(job)


def test_the_program_of_the_job_is_python() -> None:
    entrypoint = yaml.safe_load(JOB.read_text())["spec"]["entrypoint"]
    command, _, program = entrypoint.partition(' -c "')
    assert command == "python"
    compile(program.removesuffix('"'), "entrypoint", "exec")
    assert "wireproof.ray.reverify(" in program


def test_the_version_of_ray_is_the_one_that_is_tested() -> None:
    pins = (Path(__file__).parents[1] / "requirements-test-cluster.txt").read_text()
    version = yaml.safe_load(JOB.read_text())["spec"]["rayClusterSpec"]["rayVersion"]
    assert f"ray=={version}\n" in pins and f"rayproject/ray:{version}-" in JOB.read_text()
