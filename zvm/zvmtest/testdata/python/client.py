"""A client of a ZVM that knows nothing but requests.

It does what scripts against the public API do: log in with a password, list
the VPGs, insert a tagged checkpoint, poll its task, find it in the journal,
and fetch one file of a VM from it by file-level recovery. The result is one
JSON object on stdout.

ZVM_URL, ZVM_USERNAME, ZVM_PASSWORD, ZVM_CA_FILE, ZVM_VPG and ZVM_FILE say
where and what.
"""

import json
import os
import time

import requests

URL = os.environ["ZVM_URL"]
CA_FILE = os.environ["ZVM_CA_FILE"]
DEADLINE = time.monotonic() + 60


def login():
    response = requests.post(
        URL + "/auth/realms/zerto/protocol/openid-connect/token",
        data={
            "grant_type": "password",
            "client_id": "zerto-client",
            "scope": "openid",
            "username": os.environ["ZVM_USERNAME"],
            "password": os.environ["ZVM_PASSWORD"],
        },
        verify=CA_FILE,
        timeout=30,
    )
    response.raise_for_status()
    session = requests.Session()
    session.headers["Authorization"] = "Bearer " + response.json()["access_token"]
    return session


def call(session, method, path, **kwargs):
    response = session.request(method, URL + path, verify=CA_FILE, timeout=30, **kwargs)
    response.raise_for_status()
    return response


def until(look):
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > DEADLINE:
            raise TimeoutError(look.__name__)
        time.sleep(0.05)


def wait_for_task(session, task_id):
    def ended():
        task = call(session, "GET", "/v1/tasks/" + task_id).json()
        return task if task["Status"]["State"] in (4, 5, 6) else None

    task = until(ended)
    if task["Status"]["State"] != 6:
        raise RuntimeError(task["CompleteReason"])
    return task


def insert_checkpoint(session, vpg, name):
    path = "/v1/vpgs/%s/checkpoints" % vpg["VpgIdentifier"]
    task = wait_for_task(session, call(session, "POST", path, json={"checkpointName": name}).json())

    # Checkpoints carry whole seconds, so the window begins with the second.
    since = task["Started"][:19] + "Z"

    def tagged():
        points = call(session, "GET", path, params={"startDate": since}).json()
        return [point for point in points if point["Tag"] == name]

    return task, until(tagged)


def fetch_file(session, vpg, vm, checkpoint, path):
    mount = {
        "vpgIdentifier": vpg["VpgIdentifier"],
        "vmIdentifier": vm["VmIdentifier"],
        "checkpointIdentifier": checkpoint["CheckpointIdentifier"],
    }
    flr = "/v1/flrs/" + call(session, "POST", "/v1/flrs", json={"jflr": mount}).json()
    try:
        until(lambda: call(session, "GET", flr).json()["FlrSessionStatus"] == "MountCompletedSuccessfully")
        root = call(session, "POST", flr + "/browse", json={"path": ""}).json()["PathItems"][0]["Path"]
        folder = call(session, "POST", flr + "/browse", json={"path": root + os.path.dirname(path)}).json()
        item = next(i for i in folder["PathItems"] if i["Path"].endswith("/" + os.path.basename(path)))
        link = call(session, "POST", flr + "/download", json={"pathList": [item["Path"]]}).json()
        content = call(session, "GET", link).content
        if len(content) != item["SizeInBytes"]:
            raise RuntimeError("%d bytes of %d" % (len(content), item["SizeInBytes"]))
        return content.decode()
    finally:
        wait_for_task(session, call(session, "DELETE", flr).json())


def main():
    session = login()
    vpgs = call(session, "GET", "/v1/vpgs").json()
    vpg = next(v for v in vpgs if v["VpgName"] == os.environ["ZVM_VPG"])
    vm = call(session, "GET", "/v1/vms", params={"vpgName": vpg["VpgName"]}).json()[0]
    task, points = insert_checkpoint(session, vpg, "before the change")
    content = fetch_file(session, vpg, vm, points[0], os.environ["ZVM_FILE"])
    print(json.dumps({
        "vpgs": sorted(v["VpgName"] for v in vpgs),
        "vm": vm["VmName"],
        "task": task["Type"],
        "tagged": len(points),
        "content": content,
        "open": len(call(session, "GET", "/v1/flrs").json()),
    }))


if __name__ == "__main__":
    main()
