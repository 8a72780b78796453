import subprocess
import sys

import facetwalk.zoo


def test_the_package_imports_without_any_extra():
    blocked = ["onnx", "onnx2torch", "onnxruntime", "sklearn", "safetensors", "torchvision"]
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({blocked}))\n"
        "from facetwalk.zoo import *\n"
        "print(load_model('random:3,4,1').input_shape)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("(3,)\n", "")


def test_every_public_name_exists():
    assert all(hasattr(facetwalk.zoo, name) for name in facetwalk.zoo.__all__)
