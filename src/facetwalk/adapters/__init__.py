"""Our attack where people already are: in the attack libraries that they use.

for_torchattacks.TorchAttack    a torchattacks.Attack
for_foolbox.FoolboxAttack       a foolbox.attacks.base.FixedEpsilonAttack
for_art.ArtAttack               an art.attacks.EvasionAttack

Importing this needs none of the libraries; importing one of the three modules needs its own.
"""
