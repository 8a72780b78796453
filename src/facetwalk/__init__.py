"""facetwalk: input optimisation of ReLU networks."""
